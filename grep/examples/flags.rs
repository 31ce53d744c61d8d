//! Prints the flags of the search as a table in Markdown, from the same data as its help and its
//! manual page: `cargo run -p lightfoot-grep --example flags`.

use lightfoot_grep::command_help;
use present::help::OptionHelp;
use present::output::print;

fn row(option: &OptionHelp) -> String {
    let spellings: Vec<String> = option.spellings().map(|spelling| format!("`{spelling}`")).collect();
    let value = option.value.as_deref().unwrap_or_default();
    // A bar would end the cell.
    format!("| {} | {value} | {} |\n", spellings.join(" "), option.about.replace('|', "\\|"))
}

fn main() -> anyhow::Result<()> {
    let command = command_help(&["lightfoot-grep"]);
    for group in &command.groups {
        let rows: String = group.options.iter().map(row).collect();
        print(&format!("## {}\n\n| flag | value | meaning |\n|---|---|---|\n{rows}\n", group.title))?;
    }
    Ok(())
}
