//! Demangles names of functions.

/// Demangles Rust and C++ names; any other name is returned unchanged.
pub fn demangle(name: &str) -> String {
    // A linker appends versions and parts after the mangled name: `f@@V1`, `f.cold`, `f.part.0`.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let (mangled, suffix) = name.find(['.', '@']).map_or((name, ""), |at| name.split_at(at));
    let options = cpp_demangle::DemangleOptions::new().hide_expression_literal_types();
    let plain = cpp_demangle::Symbol::new(mangled)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok());
    plain.map_or_else(|| name.to_owned(), |plain| plain + suffix)
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn each_language_reads_as_written() {
        for (mangled, plain) in [
            ("main", "main"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"),
            ("_ZN3foo3barEi", "foo::bar(int)"),
            ("_ZN3foo3barEi.cold", "foo::bar(int).cold"),
            ("_ZN3foo3barEv@plt", "foo::bar()@plt"),
            ("_Zbroken", "_Zbroken"),
        ] {
            assert_eq!(demangle(mangled), plain);
        }
    }
}
