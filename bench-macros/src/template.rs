//! Code as a text with places to fill in.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// The tokens of `text`, with those of `places` for each identifier of their names.
pub(crate) fn fill(text: &str, places: &[(&str, TokenStream)]) -> TokenStream {
    // The texts are written in this crate, and tests read each of them.
    filled(text.parse().unwrap_or_default(), places)
}

fn filled(tokens: TokenStream, places: &[(&str, TokenStream)]) -> TokenStream {
    let mut all = TokenStream::new();
    for token in tokens {
        match &token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), filled(group.stream(), places));
                inner.set_span(group.span());
                all.extend([TokenTree::Group(inner)]);
            }
            TokenTree::Ident(name) => match places.iter().find(|(place, _)| name.to_string() == *place) {
                Some((_, tokens)) => all.extend(tokens.clone()),
                None => all.extend([token]),
            },
            _ => all.extend([token]),
        }
    }
    all
}

/// Code that ends the compilation with a sentence, at this place.
pub(crate) fn error(sentence: &str, span: Span) -> TokenStream {
    let mut text = Literal::string(sentence);
    text.set_span(span);
    let mut bang = Punct::new('!', Spacing::Alone);
    bang.set_span(span);
    let mut group = Group::new(Delimiter::Brace, TokenTree::Literal(text).into());
    group.set_span(span);
    [TokenTree::Ident(Ident::new("compile_error", span)), TokenTree::Punct(bang), TokenTree::Group(group)]
        .into_iter()
        .collect()
}
