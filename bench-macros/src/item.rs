//! What has to be known of an item: the words before its name, and its parameters.

use proc_macro::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};

/// A function that becomes a benchmark.
pub(crate) struct Function {
    pub(crate) name: Ident,
    pub(crate) visibility: TokenStream,
    /// Its `#[cfg(…)]` attributes.
    pub(crate) conditions: TokenStream,
    pub(crate) is_async: bool,
    /// Whether it has an attribute `inline`.
    pub(crate) is_inlined: bool,
    pub(crate) parameters: Parameters,
}

/// The parameters of a function.
#[derive(Clone, Copy)]
pub(crate) enum Parameters {
    /// So many.
    Count(usize),
    /// Types besides.
    Generic,
    /// `self` among them.
    Own,
}

/// Splits tokens at commas that stand in no brackets, angle brackets of types included.
pub(crate) fn pieces(tokens: TokenStream) -> Vec<TokenStream> {
    let (mut all, mut piece, mut depth) = (Vec::new(), Vec::new(), 0usize);
    let mut before = [' ', ' '];
    for token in tokens {
        let sign = match &token {
            TokenTree::Punct(punct) => punct.as_char(),
            _ => ' ',
        };
        match sign {
            // In an expression only `::<` opens; in a type every `<` does.
            '<' if before == [':', ':'] || depth > 0 || before[1] == 'a' && is_type(&piece) => depth += 1,
            '>' if depth > 0 && !matches!(before[1], '-' | '=') => depth -= 1,
            ',' if depth == 0 => {
                all.push(std::mem::take(&mut piece).into_iter().collect());
                before = [' ', ' '];
                continue;
            }
            _ => {}
        }
        let shown = if matches!(token, TokenTree::Ident(_)) { 'a' } else { sign };
        before = [before[1], shown];
        piece.push(token);
    }
    if !piece.is_empty() {
        all.push(piece.into_iter().collect());
    }
    all
}

/// Whether the tokens are the beginning of a parameter, `name: Type`, and no expression.
fn is_type(piece: &[TokenTree]) -> bool {
    let colon = |token: Option<&TokenTree>| match token {
        Some(TokenTree::Punct(punct)) if punct.as_char() == ':' => Some(punct.spacing()),
        _ => None,
    };
    let before = std::iter::once(None).chain(piece.iter().map(Some));
    piece.iter().zip(before).any(|(token, before)| {
        colon(Some(token)) == Some(Spacing::Alone) && colon(before) != Some(Spacing::Joint)
    })
}

/// Reads a function's head.
pub(crate) fn function(item: &TokenStream) -> Result<Function, (String, Span)> {
    let refused =
        || ("a benchmark is a function: write #[bench] fn name() { … }".to_owned(), Span::call_site());
    let (mut visibility, mut conditions) = (TokenStream::new(), TokenStream::new());
    let (mut is_async, mut is_inlined) = (false, false);
    let mut tokens = item.clone().into_iter().peekable();
    // Everything before `fn`, then the name and the list of parameters.
    loop {
        match tokens.next().ok_or_else(refused)? {
            TokenTree::Punct(hash) if hash.as_char() == '#' => {
                let Some(TokenTree::Group(attribute)) = tokens.next() else { return Err(refused()) };
                is_inlined |= last_word(&attribute) == "inline";
                if last_word(&attribute) == "cfg" {
                    conditions.extend([TokenTree::Punct(hash), TokenTree::Group(attribute)]);
                }
            }
            TokenTree::Ident(word) => match word.to_string().as_str() {
                "fn" => break,
                "async" => is_async = true,
                "pub" => {
                    visibility.extend([TokenTree::Ident(word)]);
                    if let Some(TokenTree::Group(scope)) = tokens.peek() {
                        visibility.extend([TokenTree::Group(scope.clone())]);
                    }
                }
                "const" | "unsafe" | "extern" => {}
                _ => return Err(refused()),
            },
            TokenTree::Group(_) | TokenTree::Literal(_) => {}
            TokenTree::Punct(_) => return Err(refused()),
        }
    }
    let Some(TokenTree::Ident(name)) = tokens.next() else { return Err(refused()) };
    let parameters = match tokens.next() {
        Some(TokenTree::Group(list)) if list.delimiter() == Delimiter::Parenthesis => {
            let all = pieces(list.stream());
            let is_self =
                |token: TokenTree| matches!(token, TokenTree::Ident(word) if word.to_string() == "self");
            match all.first().is_some_and(|first| first.clone().into_iter().any(is_self)) {
                true => Parameters::Own,
                false => Parameters::Count(all.len()),
            }
        }
        _ => Parameters::Generic,
    };
    Ok(Function { name, visibility, conditions, is_async, is_inlined, parameters })
}

/// The last word of an attribute's path, such as `bench` of `[lightfoot_bench::bench(…)]`.
fn last_word(attribute: &Group) -> String {
    let path = attribute.stream().into_iter().take_while(|token| match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        _ => false,
    });
    let words = path.filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    words.last().unwrap_or_default()
}

/// The benchmarks and groups among the items of a module, each with its `#[cfg(…)]` attributes.
pub(crate) fn benchmarks_of(items: TokenStream) -> Vec<(TokenStream, Ident)> {
    let mut found = Vec::new();
    let (mut conditions, mut wanted) = (TokenStream::new(), None);
    let mut tokens = items.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(hash) if hash.as_char() == '#' => {
                let Some(TokenTree::Group(attribute)) =
                    tokens.next_if(|next| matches!(next, TokenTree::Group(_)))
                else {
                    continue;
                };
                match last_word(&attribute).as_str() {
                    "bench" => wanted = Some("fn"),
                    "group" => wanted = Some("mod"),
                    "cfg" => conditions.extend([TokenTree::Punct(hash), TokenTree::Group(attribute)]),
                    _ => {}
                }
            }
            TokenTree::Ident(word) if wanted.is_some_and(|wanted| word.to_string() == wanted) => {
                if let Some(TokenTree::Ident(name)) = tokens.next() {
                    found.push((std::mem::take(&mut conditions), name));
                }
                wanted = None;
            }
            // An item ends with its body or a semicolon; what its attributes said ends with it.
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                (conditions, wanted) = (TokenStream::new(), None);
            }
            TokenTree::Punct(end) if end.as_char() == ';' => {
                (conditions, wanted) = (TokenStream::new(), None)
            }
            _ => {}
        }
    }
    found
}
