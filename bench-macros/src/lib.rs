//! The attributes `bench` and `group` of crate `lightfoot-bench`, which documents them.
//!
//! An attribute leaves its item as it is and adds a type, or a function in the module, with one
//! function `__add_to` that hands the benchmarks to a runner. `lightfoot_bench::main!` names these
//! by the path of the item. **Leaves out** a parser of Rust: all that has to be known of a function
//! is its name, whether it is `async`, and how many parameters it has, which tokens tell. So nobody
//! who writes a benchmark has to build `syn`.

#![forbid(unsafe_code)]

mod item;
mod setting;
mod template;

use item::{benchmarks_of, function, Function, Parameters};
use proc_macro::{Delimiter, Group, TokenStream, TokenTree};
use setting::{Input, Setting};
use template::{error, fill};

/// Makes a function a benchmark; see crate `lightfoot-bench`.
#[proc_macro_attribute]
pub fn bench(setting: TokenStream, item: TokenStream) -> TokenStream {
    let made = Setting::read(setting).and_then(|setting| {
        let function = function(&item)?;
        added(&function, &setting)
    });
    match made {
        // The function gets a symbol of its own, under which reports show it.
        Ok((added, Inlining::Open)) => {
            fill("#[inline(never)] ITEM ADDED", &[("ITEM", item), ("ADDED", added)])
        }
        Ok((added, Inlining::Chosen)) => fill("ITEM ADDED", &[("ITEM", item), ("ADDED", added)]),
        Err((sentence, span)) => fill("ERROR ITEM", &[("ERROR", error(&sentence, span)), ("ITEM", item)]),
    }
}

/// Makes a module a group of the benchmarks in it; see crate `lightfoot-bench`.
#[proc_macro_attribute]
pub fn group(setting: TokenStream, item: TokenStream) -> TokenStream {
    if let Some(first) = setting.into_iter().next() {
        let said = "a group has no settings: write #[group]";
        return fill("ERROR ITEM", &[("ERROR", error(said, first.span())), ("ITEM", item)]);
    }
    // The body is the last token of a module.
    let mut tokens: Vec<TokenTree> = item.clone().into_iter().collect();
    let is_module =
        tokens.iter().any(|token| matches!(token, TokenTree::Ident(word) if word.to_string() == "mod"));
    let body = match tokens.pop() {
        Some(TokenTree::Group(body)) if is_module && body.delimiter() == Delimiter::Brace => body,
        _ => {
            let said = "a group is a module with its contents: write #[group] mod name { … }";
            let span = proc_macro::Span::call_site();
            return fill("ERROR ITEM", &[("ERROR", error(said, span)), ("ITEM", item)]);
        }
    };
    let mut calls = TokenStream::new();
    for (conditions, name) in benchmarks_of(body.stream()) {
        let name = TokenStream::from(TokenTree::Ident(name));
        calls.extend(fill(
            "CONDITIONS NAME::__add_to(runner);",
            &[("CONDITIONS", conditions), ("NAME", name)],
        ));
    }
    let with = "BODY #[doc(hidden)] #[allow(unreachable_pub)]
        pub fn __add_to(runner: &mut ::lightfoot_bench::Runner) { CALLS }";
    let body = Group::new(Delimiter::Brace, fill(with, &[("BODY", body.stream()), ("CALLS", calls)]));
    tokens.push(TokenTree::Group(body));
    tokens.into_iter().collect()
}

/// Whether a function says itself how it is inlined.
enum Inlining {
    Open,
    Chosen,
}

type Refusal = (String, proc_macro::Span);

/// The type that hands the benchmarks of a function to a runner.
fn added(function: &Function, setting: &Setting) -> Result<(TokenStream, Inlining), Refusal> {
    let name = function.name.to_string();
    let refused = |said: String| Err((said, function.name.span()));
    let has_input = setting.setup.is_some() || !setting.inputs.is_empty();
    match (function.parameters, has_input) {
        (Parameters::Own, _) => return refused(format!("benchmark {name} is a method: make it a function")),
        (Parameters::Generic, _) => {
            return refused(format!("benchmark {name} is generic: write a function that chooses its types"))
        }
        (Parameters::Count(0), true) => {
            return refused(format!(
                "benchmark {name} takes no input: give it a parameter, or leave out setup and args"
            ))
        }
        (Parameters::Count(1..), false) => {
            return refused(format!(
                "benchmark {name} takes an input: give it one with setup = … or args(name = …)"
            ))
        }
        _ => {}
    }
    // A benchmark without named inputs has one without a name.
    let whole = Input { name: None, value: TokenStream::new() };
    let inputs = if setting.inputs.is_empty() { std::slice::from_ref(&whole) } else { &setting.inputs };
    let calls = inputs.iter().map(|input| call(function, setting.setup.as_ref(), input)).collect();
    let conditions = function.conditions.clone();
    let add = "CONDITIONS #[doc(hidden)] #[allow(non_camel_case_types)] VISIBILITY enum NAME {}
        CONDITIONS impl NAME {
            #[doc(hidden)]
            #[allow(unreachable_pub, clippy::redundant_closure_call, clippy::unit_arg)]
            pub fn __add_to(runner: &mut ::lightfoot_bench::Runner) { CALLS }
        }";
    let added = fill(
        add,
        &[
            ("CONDITIONS", conditions),
            ("VISIBILITY", function.visibility.clone()),
            ("NAME", TokenTree::Ident(function.name.clone()).into()),
            ("CALLS", calls),
        ],
    );
    Ok((added, if function.is_inlined { Inlining::Chosen } else { Inlining::Open }))
}

/// The statement that hands one benchmark to a runner.
fn call(function: &Function, setup: Option<&TokenStream>, input: &Input) -> TokenStream {
    let Parameters::Count(count) = function.parameters else { return TokenStream::new() };
    let name = TokenStream::from(TokenTree::Ident(function.name.clone()));
    let value = match setup {
        Some(setup) => fill("(SETUP)(VALUE)", &[("SETUP", setup.clone()), ("VALUE", input.value.clone())]),
        None if count == 0 => fill("()", &[]),
        None => input.value.clone(),
    };
    // Several parameters come as a tuple.
    let (pattern, passed) = match count {
        0 => ("()".to_owned(), String::new()),
        1 => ("input".to_owned(), "input".to_owned()),
        _ => {
            let all: Vec<String> = (0..count).map(|number| format!("input{number}")).collect();
            (format!("({})", all.join(", ")), all.join(", "))
        }
    };
    let called = fill(&format!("NAME({passed})"), &[("NAME", name)]);
    let called = match function.is_async {
        true => fill("::lightfoot_bench::block_on(CALLED)", &[("CALLED", called)]),
        false => called,
    };
    let suffix = input.name.as_ref().map_or(String::new(), |name| format!("/{name}"));
    let shown = format!("\"::{}{suffix}\"", function.name);
    let call = format!(
        "runner.benchmark(
            concat!(module_path!(), {shown}),
            ::lightfoot_bench::Place {{ file: file!(), line: line!() }},
            &mut |bencher: &mut ::lightfoot_bench::Bencher| bencher.measure(|| VALUE, |{pattern}| CALLED),
        );"
    );
    fill(&call, &[("VALUE", value), ("CALLED", called)])
}
