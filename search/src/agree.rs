//! Runs the agreement tests with the dummy members of both families: `descending` among the
//! layouts, `backwards` among the kernels. Neither is named here, yet both are built, queried and
//! compared with the reference: a new member needs its file and its entry in the table, and the
//! rest follows.

#[path = "../tests/agreement/mod.rs"]
mod agreement;

use crate::{Index, KERNELS, LAYOUTS};
use agreement::{check, check_index, check_type};

#[test]
fn the_dummy_members_agree_as_every_other_member_does() {
    assert!(LAYOUTS.iter().any(|entry| entry.name == "descending"));
    assert!(KERNELS.iter().any(|isa| isa.name() == "backwards"));
    check_type(u64::from(u32::MAX), "u32", |number| number as u32);
    check_type(u64::MAX, "u64", |number| number);
    check(&[-f64::NAN, -0.0, 0.0, 0.0, f64::NAN], &[f64::NAN, 0.0, 1.0], "f64 specials");
}

#[test]
fn agreement_notices_a_wrong_answer() {
    let keys: Vec<u32> = (0..500).collect();
    let others: Vec<u32> = (0..500).map(|key| key + u32::from(key > 250)).collect();
    let index = Index::build(&others).unwrap();
    check_index(&index, &others, &others, "its own keys");
    let wrong = std::panic::catch_unwind(|| check_index(&index, &keys, &keys, "others"));
    assert!(wrong.is_err());
}

/// Cells as instruction sets number them.
mod cells {
    use alloc::vec::Vec;

    use crate::cut::Cut;
    use crate::kernel::KERNELS;
    use crate::lane::Lane;
    use crate::sample::Random;
    use crate::scale::Scale;
    use crate::simd::{Found, Simd, Task, Vectors, GATHERED, MARKS};

    /// The cells of queries as an instruction set numbers them.
    struct Cells<'a, L>(&'a [u32], &'a Cut<L>, &'a [L; GATHERED]);

    impl<L: Lane> Task for Cells<'_, L> {
        type Output = [u32; GATHERED];

        fn run<S: Simd>(self, simd: S) -> [u32; GATHERED] {
            L::cells(simd, self.0, self.1, self.2)
        }
    }

    /// Compares all kernels with [`Cut::cell`], for cuts and entries that may be any.
    fn agrees<L: Lane>() {
        let mut random = Random::new(5);
        for round in 0..2000u32 {
            let number = |random: &mut Random| L::narrow(random.bits() >> random.below(64));
            let shift = random.below(u64::from(L::BITS)) as u32;
            let cut = Cut { min: number(&mut random), beyond: number(&mut random), shift };
            let roots: Vec<u32> = (0..1 + round % 70).map(|_| random.bits() as u32).collect();
            let queries: [L; GATHERED] = core::array::from_fn(|i| match i {
                0 => L::MIN,
                1 => L::MAX,
                2 => cut.min,
                _ => number(&mut random),
            });
            let last = roots.len() - 1;
            let expected = queries.map(|query| cut.cell(roots[cut.root(query).min(last)], query));
            for isa in KERNELS.iter().filter(|isa| isa.is_available()) {
                assert_eq!(isa.run(Cells(&roots, &cut, &queries)), expected, "{} {cut:?}", isa.name());
            }
        }
    }

    #[test]
    fn every_kernel_numbers_cells_alike() {
        agrees::<u32>();
        agrees::<u64>();
    }

    /// The lines and fractions of queries as an instruction set finds them, through roots that
    /// number lines and through rows of maps, and the numbers of marked words.
    struct Lines<'a, L> {
        roots: &'a [u32],
        cut: &'a Cut<L>,
        table: &'a [[L; 4]],
        at: &'a [u32; GATHERED],
        queries: &'a [L; GATHERED],
        marks: u64,
    }

    impl<L: Lane> Task for Lines<'_, L> {
        type Output = (Found<L>, Found<L>, Vec<u32>);

        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let mut list = [0; MARKS];
            let count = simd.list_marks(self.marks, 7, &mut list);
            let direct = L::lines(simd, self.roots, self.cut, self.queries);
            (direct, L::map(simd, self.table, self.at, self.queries), list[..count].to_vec())
        }
    }

    /// Compares all kernels with `Cut::line`, `Scale` and a loop over bits, for any numbers.
    fn lines_agree<L: Lane>() {
        let mut random = Random::new(6);
        for round in 0..2000u32 {
            let number = |random: &mut Random| L::narrow(random.bits() >> random.below(64));
            let shift = random.below(u64::from(L::BITS)) as u32;
            let cut = Cut { min: number(&mut random), beyond: number(&mut random), shift };
            let roots: Vec<u32> = (0..1 + round % 70).map(|_| random.bits() as u32).collect();
            let table: Vec<[L; 4]> =
                (0..1 + round % 40).map(|_| core::array::from_fn(|_| number(&mut random))).collect();
            let at = core::array::from_fn(|_| random.below(60) as u32);
            let queries: [L; GATHERED] = core::array::from_fn(|i| match i {
                0 => L::MIN,
                1 => L::MAX,
                2 => cut.min,
                _ => number(&mut random),
            });
            let marks = random.bits() & 0xFFFF_FFFF;
            let direct = queries.map(|query| cut.line(roots[cut.root(query).min(roots.len() - 1)], query));
            let mapped: Vec<(u32, L)> = (0..GATHERED)
                .map(|i| {
                    let [min, beyond, multiplier, first] = table[(at[i] as usize).min(table.len() - 1)];
                    let (line, fraction) = Scale::of_table(min, beyond, multiplier).locate(queries[i]);
                    let line = (first.widen() as u32).wrapping_add(line as u32);
                    (line, L::narrow(fraction >> (64 - L::BITS)))
                })
                .collect();
            let listed: Vec<u32> = (0..32).filter(|bit| marks >> bit & 1 == 1).map(|bit| bit + 7).collect();
            for isa in KERNELS.iter().filter(|isa| isa.is_available()) {
                let task =
                    Lines { roots: &roots, cut: &cut, table: &table, at: &at, queries: &queries, marks };
                let (lines, maps, list) = isa.run(task);
                for i in 0..GATHERED {
                    assert_eq!((lines.lines[i], lines.fractions[i]), direct[i], "{} {cut:?}", isa.name());
                    assert_eq!((maps.lines[i], maps.fractions[i]), mapped[i], "{} {round}", isa.name());
                }
                assert_eq!(list, listed, "{} {marks:x}", isa.name());
            }
        }
    }

    #[test]
    fn every_kernel_finds_lines_alike() {
        lines_agree::<u32>();
        lines_agree::<u64>();
    }
}
