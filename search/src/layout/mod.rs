//! Layouts: the order of keys in memory, and the search for ranks in it.
//!
//! A layout is a *plan* before it is bytes: a [`Shape`] is a few numbers from which every address
//! follows, so it can be printed, checked, written to a file and rebuilt.
//!
//! A layout consists of one file (its properties, its shape, how keys fill its lines, and its
//! search, generic over the instruction set) and one entry in the table of this file. Everything
//! else, such as names, file codes, the choice of a kernel, tests, races and the command, uses the
//! table. `descending` shows that this suffices: a layout of the tests that has only its file and
//! its entry.
//!
//! The table is a macro because searches are compiled for each layout and each instruction set;
//! with a table of function pointers, indirect calls inside a query would cost as much as the
//! query.

mod branch_free;
#[cfg(test)]
mod descending;
mod eytzinger;
mod kary;
mod method;
mod ordered;
mod packed;
mod pieces;
mod sorted;
mod split;
mod tree;
mod veb;
mod window;

pub(crate) use method::{Contents, Method, Placing, Refusal};

use self::method::{Numbers, Properties};
use crate::lane::{Exact, Lane};
use crate::memory::Memory;
use crate::simd::Vectors;

/// One entry of the family.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Which layout.
    pub layout: Layout,
    /// The name that selects it.
    pub name: &'static str,
    /// How it works, in one line.
    pub about: &'static str,
    /// The most lines that one query reads, for keys of any distribution (k keys per line, n keys).
    pub bound: &'static str,
}

/// The shape type of one layout of the family.
pub(crate) trait Member<L: Lane>: Method<L> {
    /// This layout's own shape, taken from the family's.
    ///
    /// # Panics
    /// When `shape` belongs to another layout.
    fn of(shape: &Shape<L>) -> &Self;
}

/// A computation that needs a layout's type; [`Shape::visit`] calls it with that type.
pub(crate) trait Visitor<L: Lane> {
    /// The result.
    type Output;
    /// Computes the result for the layout whose shape type is `M`.
    fn visit<M: Member<L>>(self) -> Self::Output;
}

/// Defines the family from its table: [`Layout`], [`LAYOUTS`], [`Shape`], and the conversions
/// between them.
macro_rules! define_layouts {
    ($(
        $(#[doc = $doc:literal])*
        $(#[cfg($present:meta)])?
        $layout:ident = $module:ident::$shape:ident$(<$lane:ident>)?;
    )*) => {
        /// The order in which keys stand in memory.
        ///
        /// ```
        /// use lightfoot_search::{Index, Layout, Options};
        /// let options = Options { layout: Some(Layout::Eytzinger), ..Options::default() };
        /// let index = Index::build_with(&[10u32, 20, 30], &options)?;
        /// assert_eq!(index.lower_bound(20), 1);
        /// assert_eq!(Layout::from_name("eytzinger"), Some(index.layout()));
        /// # Ok::<(), lightfoot_search::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Layout {
            $( $(#[doc = $doc])* $(#[cfg($present)])? $layout, )*
        }

        /// Every layout, for programs that compare them or offer them by name.
        ///
        /// ```
        /// use lightfoot_search::LAYOUTS;
        /// let names: Vec<&str> = LAYOUTS.iter().map(|entry| entry.name).collect();
        /// assert!(names.contains(&"split") && names.contains(&"tree"));
        /// ```
        pub const LAYOUTS: &[Description] = &[
            $( $(#[cfg($present)])? Description {
                layout: Layout::$layout,
                name: $module::PROPERTIES.name,
                about: $module::PROPERTIES.about,
                bound: $module::PROPERTIES.bound,
            }, )*
        ];

        impl Layout {
            /// The properties that the layout's file states.
            pub(crate) fn properties(self) -> &'static Properties {
                match self {
                    $( $(#[cfg($present)])? Layout::$layout => &$module::PROPERTIES, )*
                }
            }
        }

        /// The plan of an index: a layout and its numbers.
        #[derive(Clone, Copy, Debug)]
        #[allow(clippy::large_enum_variant, reason = "one per index, never moved in a loop")]
        pub(crate) enum Shape<L: Lane> {
            $( $(#[cfg($present)])? $layout($module::$shape$(<$lane>)?), )*
        }

        impl<L: Lane> Shape<L> {
            /// The layout.
            pub(crate) fn layout(&self) -> Layout {
                match self {
                    $( $(#[cfg($present)])? Shape::$layout(_) => Layout::$layout, )*
                }
            }

            /// The shape as the interface that all layouts have.
            #[inline(always)]
            pub(crate) fn contents(&self) -> &dyn Contents<L> {
                match self {
                    $( $(#[cfg($present)])? Shape::$layout(shape) => shape, )*
                }
            }

            /// The visitor's result for this shape's layout.
            pub(crate) fn visit<V: Visitor<L>>(&self, visitor: V) -> V::Output {
                match self {
                    $( $(#[cfg($present)])?
                    Shape::$layout(_) => visitor.visit::<$module::$shape$(<$lane>)?>(), )*
                }
            }

            /// Plans and places the sorted `keys` in `layout`.
            ///
            /// # Errors
            /// Why the layout cannot hold the keys.
            pub(crate) fn build<K: Exact<As = L>>(
                layout: Layout,
                keys: &[K],
                placing: Placing<impl Vectors>,
            ) -> Result<(Shape<L>, Memory), Refusal> {
                match layout {
                    $( $(#[cfg($present)])? Layout::$layout => {
                        let (shape, memory) = <$module::$shape$(<$lane>)? as Method<L>>::build(keys, placing)?;
                        Ok((Shape::$layout(shape), memory))
                    } )*
                }
            }

            /// The shape of `n` keys in `layout` with a file's numbers, or `None` when they
            /// describe none.
            pub(crate) fn from_numbers(layout: Layout, n: usize, numbers: Numbers) -> Option<Shape<L>> {
                match layout {
                    $( $(#[cfg($present)])? Layout::$layout => {
                        <$module::$shape$(<$lane>)? as Method<L>>::from_numbers(n, numbers).map(Shape::$layout)
                    } )*
                }
            }
        }

        $( $(#[cfg($present)])?
        impl<L: Lane> Member<L> for $module::$shape$(<$lane>)? {
            #[inline(always)]
            fn of(shape: &Shape<L>) -> &Self {
                let Shape::$layout(this) = shape else {
                    unreachable!("the kernel was chosen for this layout")
                };
                this
            }
        } )*
    };
}

define_layouts! {
    /// The sorted array, searched with branches.
    Sorted = sorted::Sorted;
    /// The sorted array, halved without branches.
    BranchFree = branch_free::BranchFree;
    /// Breadth-first binary tree, prefetching four levels ahead.
    Eytzinger = eytzinger::Eytzinger;
    /// Breadth-first tree of whole lines, every key once.
    Kary = kary::Kary;
    /// S+tree: the sorted array in lines, and levels of separators above it.
    Tree = tree::Tree;
    /// Recursive (van Emde Boas) binary tree.
    VanEmdeBoas = veb::VanEmdeBoas;
    /// A table of starts by key prefix, then one window of the sorted array.
    Window = window::Window<L>;
    /// Keys split into a line number and a short digit: one line per query.
    Split = split::Split<L>;
    /// Digits end to end, a table of starts, and interpolation with a proven bound.
    Packed = packed::Packed<L>;
    /// Split keys behind a table of straight pieces: one line per query for uneven keys.
    Pieces = pieces::Pieces<L>;
    /// The sorted array from its largest key down: the family's dummy member.
    #[cfg(test)]
    Descending = descending::Descending;
}

impl Layout {
    /// The layout's entry in [`LAYOUTS`].
    pub fn description(self) -> &'static Description {
        LAYOUTS.iter().find(|entry| entry.layout == self).expect("every layout is listed")
    }

    /// The name that selects the layout.
    pub fn name(self) -> &'static str {
        self.properties().name
    }

    /// The layout called `name`.
    pub fn from_name(name: &str) -> Option<Layout> {
        LAYOUTS.iter().find(|entry| entry.name == name).map(|entry| entry.layout)
    }

    /// The number that stands for the layout in a file.
    pub(crate) fn code(self) -> u32 {
        self.properties().code
    }

    /// The layout that a file's number stands for.
    pub(crate) fn from_code(code: u32) -> Option<Layout> {
        LAYOUTS.iter().map(|entry| entry.layout).find(|layout| layout.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_given_once_and_lead_back() {
        for (number, entry) in LAYOUTS.iter().enumerate() {
            assert_eq!(Layout::from_name(entry.name), Some(entry.layout));
            assert_eq!(Layout::from_code(entry.layout.code()), Some(entry.layout));
            assert_eq!(entry.layout.description().about, entry.about);
            // Files that were written once must stay readable: codes are numbered in the order of
            // invention.
            assert_eq!(entry.layout.code() as usize, number + 1, "{}", entry.name);
        }
        assert_eq!(Layout::from_code(0), None);
    }
}
