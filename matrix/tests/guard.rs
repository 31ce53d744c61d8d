//! Kernels and multiplications on arrays that end, or begin, at an inaccessible page: a stray
//! access ends the test.
#![cfg(unix)]

mod support;

use lightfoot_matrix::kernel::{MicroKernel, MicrokernelArguments, Reach, RealKernel};
use lightfoot_matrix::{Gemm, Kernel, Real, Strided, StridedMut};
use support::{every_kernel, Random};

/// Where the array touches forbidden memory.
#[derive(Clone, Copy, Debug)]
enum Wall {
    Before,
    Behind,
}

/// `len` numbers between two pages without access.
struct Walled<T> {
    map: *mut libc::c_void,
    bytes: usize,
    start: *mut T,
    len: usize,
}

impl<T: Copy> Walled<T> {
    fn new(data: &[T], wall: Wall) -> Walled<T> {
        const PAGE: usize = 4096;
        let used = size_of_val(data).next_multiple_of(PAGE).max(PAGE);
        let bytes = used + 2 * PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh private mapping; the middle is opened for reading and writing.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        let middle = map.wrapping_byte_add(PAGE);
        // SAFETY: the range lies in the mapping that was just made, and nothing refers to it yet.
        assert_eq!(unsafe { libc::mprotect(middle, used, libc::PROT_READ | libc::PROT_WRITE) }, 0);
        let skip = match wall {
            Wall::Before => 0,
            Wall::Behind => used - size_of_val(data),
        };
        let start = middle.wrapping_byte_add(skip).cast::<T>();
        // SAFETY: `data.len()` numbers fit between `start` and the wall.
        unsafe { start.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        Walled { map, bytes, start, len: data.len() }
    }

    fn get(&mut self) -> &mut [T] {
        // SAFETY: the mapping is ours and holds `len` initialised numbers.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl<T> Drop for Walled<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, unmapped only here.
        unsafe { libc::munmap(self.map, self.bytes) };
    }
}

fn check_kernel<T: Real>(kernel: &'static RealKernel<T>) {
    for wall in [Wall::Before, Wall::Behind] {
        let tall = kernel.tall.iter().enumerate().map(|(panels, run)| (panels + 1, 1, *run));
        let run = kernel.run.iter().enumerate().flat_map(|(panels, runs)| {
            runs.iter().enumerate().map(move |(columns, run)| (panels + 1, columns + 1, *run))
        });
        for (panels, columns, run) in run.chain(tall) {
            for k in [0, 1, 2, 3, 4, 5, 7, 8, 33] {
                check_tile(kernel.panel, (panels, columns, k), run, wall);
            }
        }
    }
}

/// One kernel on panels, and on arrays as they lie: `A` by columns, `B` by rows and by columns, `C`
/// with rows missing.
fn check_tile<T: Real>(
    panel: usize,
    (panels, columns, k): (usize, usize, usize),
    run: MicroKernel<T>,
    wall: Wall,
) {
    let rows = panels * panel;
    let in_panels = (panel * k, panel, 1, panel);
    for (a_panel, a_step, b_column, b_step) in
        [in_panels, (panel, rows, k.max(1), 1), (panel, rows, 1, columns)]
    {
        for last_rows in [1, panel - 1, panel] {
            let mut a = Walled::new(&vec![T::ONE; rows * k], wall);
            // The last row of B ends with its group, not with the panel.
            let b_len = if k == 0 { 0 } else { (k - 1) * b_step + (columns - 1) * b_column + 1 };
            let mut b = Walled::new(&vec![T::ONE; b_len], wall);
            let c_rows = rows - panel + last_rows;
            let mut c = Walled::new(&vec![T::ONE; c_rows * columns], wall);
            let micro = MicrokernelArguments {
                k,
                a: a.get().as_ptr(),
                a_panel: a_panel as isize,
                a_step: a_step as isize,
                b: b.get().as_ptr(),
                b_column: b_column as isize,
                b_step: b_step as isize,
                c: c.get().as_mut_ptr(),
                c_panel: panel as isize,
                c_column: c_rows as isize,
                last_rows,
                alpha: T::ONE,
                beta: T::ONE,
                next: std::ptr::null(),
                ahead: 64,
                reach: if k % 2 == 0 { Reach::Near } else { Reach::Far },
            };
            // SAFETY: available, and the three arrays are exactly as large as the contract asks
            // for.
            unsafe { run(&micro) };
            let sum = (0..k).fold(T::ONE, |sum, _| sum + T::ONE);
            let context = format!("{panels} panels, {columns} columns, depth {k}, {wall:?}");
            assert!(c.get().iter().all(|&v| v == sum), "{context}");
        }
    }
}

#[test]
fn kernels_stay_within_their_operands() {
    every_kernel(|kernel: &'static Kernel| {
        check_kernel(<f32 as Real>::kernel(kernel));
        check_kernel(<f64 as Real>::kernel(kernel));
    });
}

#[test]
fn plain_products_stay_within_their_arrays() {
    let mut random = Random(41);
    every_kernel(|kernel| {
        for wall in [Wall::Before, Wall::Behind] {
            for (m, n, k) in [
                (1, 1, 1),
                (7, 9, 3),
                (12, 12, 5),
                (17, 6, 2),
                (31, 11, 4),
                (24, 8, 16),
                (25, 33, 17),
                (64, 50, 70),
            ] {
                for row_major in [0usize, 1, 2, 3, 4, 5, 6, 7] {
                    let mut numbers = |len: usize| (0..len).map(|_| random.unit()).collect::<Vec<f64>>();
                    let (mut a, mut b) =
                        (Walled::new(&numbers(m * k), wall), Walled::new(&numbers(k * n), wall));
                    let mut c = Walled::new(&numbers(m * n), wall);
                    let strides = |bit: usize, rows: usize, cols: usize| match row_major >> bit & 1 {
                        1 => (cols as isize, 1),
                        _ => (1, rows as isize),
                    };
                    let ((rsa, csa), (rsb, csb), (rsc, csc)) =
                        (strides(0, m, k), strides(1, k, n), strides(2, m, n));
                    let a = Strided::new(a.get(), m, k, rsa, csa).unwrap();
                    let b = Strided::new(b.get(), k, n, rsb, csb).unwrap();
                    let view = StridedMut::new(c.get(), m, n, rsc, csc).unwrap();
                    Gemm::new().kernel(kernel).multiply_strided(1.0, a, b, 0.5, view).unwrap();
                }
            }
        }
    });
}
