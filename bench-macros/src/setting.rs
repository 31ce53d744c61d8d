//! What stands in the parentheses of `#[bench(…)]`.

use crate::item::pieces;
use proc_macro::{Delimiter, Ident, Span, TokenStream, TokenTree};

/// The settings of a benchmark.
pub(crate) struct Setting {
    /// What makes the input, outside of the measured part.
    pub(crate) setup: Option<TokenStream>,
    /// The named inputs.
    pub(crate) inputs: Vec<Input>,
}

/// An input of a benchmark.
pub(crate) struct Input {
    /// `None` for the only one.
    pub(crate) name: Option<Ident>,
    /// The value, or what the set-up makes it from.
    pub(crate) value: TokenStream,
}

const KNOWN: &str = "write #[bench], #[bench(setup = …)] or #[bench(args(name = …, name = …))]";

impl Setting {
    /// Reads the settings.
    pub(crate) fn read(tokens: TokenStream) -> Result<Setting, (String, Span)> {
        let mut setting = Setting { setup: None, inputs: Vec::new() };
        for piece in pieces(tokens) {
            let mut tokens = piece.into_iter();
            let Some(first) = tokens.next() else { continue };
            let (word, span) = (first.to_string(), first.span());
            match (word.as_str(), tokens.next()) {
                ("setup", Some(TokenTree::Punct(equals))) if equals.as_char() == '=' => {
                    if setting.setup.is_some() {
                        return Err(("setup is given twice: leave one out".to_owned(), span));
                    }
                    setting.setup = Some(tokens.collect());
                }
                ("args", Some(TokenTree::Group(group))) if group.delimiter() == Delimiter::Parenthesis => {
                    for piece in pieces(group.stream()) {
                        setting.inputs.push(input(piece, span)?);
                    }
                }
                _ => return Err((format!("{word} is no setting of a benchmark: {KNOWN}"), span)),
            }
        }
        // Names tell benchmarks apart.
        for (number, input) in setting.inputs.iter().enumerate() {
            let name = |input: &Input| input.name.as_ref().map(ToString::to_string).unwrap_or_default();
            if setting.inputs[..number].iter().any(|other| name(other) == name(input)) {
                let span = input.name.as_ref().map_or_else(Span::call_site, Ident::span);
                return Err((format!("two inputs are called {}: rename one", name(input)), span));
            }
        }
        Ok(setting)
    }
}

/// Reads `name = value`.
fn input(piece: TokenStream, around: Span) -> Result<Input, (String, Span)> {
    let span = piece.clone().into_iter().next().map_or(around, |first| first.span());
    let mut tokens = piece.into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(equals))) if equals.as_char() == '=' => {
            let value: TokenStream = tokens.collect();
            match value.is_empty() {
                true => Err((format!("input {name} has no value: write {name} = …"), span)),
                false => Ok(Input { name: Some(name), value }),
            }
        }
        _ => Err(("an input has a name: write args(name = value)".to_owned(), span)),
    }
}
