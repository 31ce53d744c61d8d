//! How the interpreter is translated for an instruction set: a macro that a kernel's file calls.
//!
//! A macro, because an attribute (`#[target_feature]`) cannot take a generic parameter, and
//! functions that carry it are inlined only into others that carry it.

/// Defines the interpreter's loop over the steps of a body as a function of the calling module: the
/// same source for each kernel, translated with the instructions that the kernel names.
macro_rules! translate_interpreter {
    ($name:ident $(, $features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        fn $name(run: &mut $crate::kernel::interpret::Execution<'_>, steps: &[$crate::kernel::interpret::Step]) {
            use $crate::kernel::interpret::Step;
            for step in steps {
                match step {
                    // A body is skipped where its condition has no bit: what it yields has none.
                    Step::If { condition, body, yields } => {
                        if run.any(*condition) {
                            $name(run, body);
                            yields.iter().for_each(|&(to, from)| run.copy(to, from));
                        } else {
                            yields.iter().for_each(|&(to, _)| run.fill(to, 0));
                        }
                    }
                    // The frontier starts as everything; each round keeps what the body adds to it.
                    Step::While { initial, frontier, to, next, body, carries, outermost } => {
                        let was_in_loop = run.enter_loop(*outermost, carries);
                        run.copy(*to, *initial);
                        run.copy(*frontier, *initial);
                        loop {
                            $name(run, body);
                            run.forget_received(carries);
                            if !run.advance_frontier(*to, *frontier, *next) {
                                break;
                            }
                        }
                        run.leave_loop(was_in_loop, *outermost, carries);
                    }
                    step => run.flat(step),
                }
            }
        }
    };
}
