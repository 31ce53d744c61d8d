//! A page that opens offline: one file with its style, its numbers as JSON, and its script.
//!
//! Pages share a style (day, night, paper, narrow screens) and what their scripts begin with. A
//! policy in the head of each allows its own style and script alone. **Leaves out** what a page
//! shows: that is the caller's.

use crate::policy;
use crate::terminal::printable;

/// The style of all pages.
const STYLE: &str = include_str!("page.css");
/// What the scripts of pages begin with: `D`, the page's data, and words for elements and numbers.
const SCRIPT: &str = include_str!("page.js");

/// A page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Its title, as plain text.
    pub title: &'a str,
    /// Its body, as HTML.
    pub body: &'a str,
    /// Its own style, behind that of all pages.
    pub style: &'a str,
    /// Its numbers as JSON, and its own script, which finds them as `D`.
    pub script: Option<(&'a str, &'a str)>,
}

impl Page<'_> {
    /// The whole file.
    pub fn html(&self) -> String {
        let style = format!("\n{STYLE}{}", self.style);
        let script = self.script.map(|(_, script)| format!("\n{SCRIPT}{script}"));
        let scripts: Vec<&str> = script.iter().map(String::as_str).collect();
        let policy = policy::element(&[&style], &scripts);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n{policy}<meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>{}</title>\n<style>{style}</style>\n<main>\n{}</main>\n",
            text(self.title),
            self.body
        );
        if let (Some((data, _)), Some(script)) = (self.script, script) {
            // Text inside a script element must not contain the element's end tag.
            let data = data.replace("</", "<\\/").replace("<!--", "<\\u0021--");
            out += &format!(
                "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>{script}</script>\n"
            );
        }
        out + "</html>\n"
    }
}

/// Text for use between tags, with control characters made visible.
pub fn text(plain: &str) -> String {
    printable(plain).replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_places() {
        let page = Page { title: "a</title><b>", body: "", style: "", script: Some(("\"</script>\"", "")) };
        let html = page.html();
        assert!(
            html.contains("<title>a&lt;/title>&lt;b></title>") && html.contains("\"<\\/script>\""),
            "{html}"
        );
        assert_eq!((html.matches("<script").count(), html.matches("</script>").count()), (2, 2));
        let still = Page { script: None, ..page }.html();
        assert!(still.contains("script-src 'none'") && !still.contains("<script"));
    }
}
