//! Tests of the kernels as a family: its members, and one that is in no list.

use super::factor::FactorSet;
use super::instruction_set::{Kernel, RealKernel};
use super::microkernel::MicrokernelArguments;
use super::{runnable, scalar};
use crate::support::agreement::{blocked_products_agree, plain_products_agree};
use num_complex::Complex;

/// A family whose first member is the scalar kernel, marked as one that no processor can run.
static WITH_A_FOREIGN_ONE: &[Kernel] =
    &[Kernel { name: "foreign", is_available: || false, ..scalar::KERNEL }, scalar::KERNEL];

#[test]
fn a_kernel_that_the_processor_lacks_is_not_handed_out() {
    let names: Vec<_> = runnable(WITH_A_FOREIGN_ONE).map(Kernel::name).collect();
    assert_eq!(names, ["scalar"]);
}

#[test]
fn every_kernel_that_is_handed_out_runs_here() {
    assert!(Kernel::available().all(|kernel| (kernel.is_available)()));
    assert!((Kernel::best().is_available)());
    for name in Kernel::names() {
        let is_there = Kernel::available().any(|kernel| kernel.name == name);
        assert_eq!(Kernel::named(name).is_some(), is_there, "{name}");
    }
}

/// A member whose shape no other has: panels of 4 rows by 2 columns. `WRONG` makes it ignore β.
macro_rules! dummy {
    ($name:ident, $real:ty) => {
        // SAFETY: every pointer below is in the list of `MicroKernel`'s requirements.
        unsafe fn $name<const C: usize, const WRONG: bool>(micro: &MicrokernelArguments<$real>) {
            for column in 0..C as isize {
                for row in 0..micro.last_rows as isize {
                    let mut sum = 0.0;
                    for k in 0..micro.k as isize {
                        let a = micro.a.wrapping_offset(row + k * micro.a_step);
                        let b = micro.b.wrapping_offset(column * micro.b_column + k * micro.b_step);
                        // SAFETY: these are column `k` of the panel of `A` and row `k` of the group
                        // of `B`.
                        sum += unsafe { *a * *b };
                    }
                    // SAFETY: row `row` of the panel of `C` exists; it is initialised unless β is
                    // 0.
                    let c = unsafe { &mut *micro.c.wrapping_offset(row + column * micro.c_column) };
                    let before = if micro.beta == 0.0 || WRONG { 0.0 } else { micro.beta * *c };
                    *c = micro.alpha * sum + before;
                }
            }
        }
    };
}

dummy!(dummy_f32, f32);
dummy!(dummy_f64, f64);

const fn member<const WRONG: bool>(name: &'static str) -> Kernel {
    Kernel {
        name,
        is_available: || true,
        factor: FactorSet::Scalar,
        f32: RealKernel {
            panel: 4,
            columns: 2,
            run: &[&[dummy_f32::<1, WRONG>, dummy_f32::<2, WRONG>]],
            tall: &[],
            direct: &[],
            thin: None,
        },
        f64: RealKernel {
            panel: 4,
            columns: 2,
            run: &[&[dummy_f64::<1, WRONG>, dummy_f64::<2, WRONG>]],
            tall: &[],
            direct: &[],
            thin: None,
        },
    }
}

static DUMMY: Kernel = member::<false>("dummy");
static WRONG: Kernel = member::<true>("wrong");

#[test]
fn a_member_that_is_not_listed_agrees_with_the_reference() {
    blocked_products_agree::<f64>(&DUMMY);
    plain_products_agree::<f64>(&DUMMY);
    plain_products_agree::<f32>(&DUMMY);
    blocked_products_agree::<Complex<f64>>(&DUMMY);
}

#[test]
fn a_wrong_member_is_found() {
    let agree = |check: fn(&'static Kernel)| std::panic::catch_unwind(|| check(&WRONG)).is_ok();
    assert!(!agree(blocked_products_agree::<f64>));
    assert!(!agree(plain_products_agree::<f32>));
}
