//! PowerShell: a list for each command, chosen by the words before the cursor.

use super::template::with_names;
use crate::help::CommandHelp;
use std::fmt::Write;

pub(crate) fn script(root: &CommandHelp) -> String {
    let mut out = String::from(
        "# PowerShell completions of @NAME@: put these lines into the file that $PROFILE names.\n\
         Register-ArgumentCompleter -Native -CommandName @NAME@ -ScriptBlock {\n  param($word, $line)\n  $pages = @{\n",
    );
    for page in root.all() {
        let _ = writeln!(out, "    '{}' = @(", page.name());
        let commands = page.commands.iter().map(|page| (page.last().to_owned(), &page.about));
        let options = page.options().flat_map(|option| {
            option.spellings().map(|spelling| (spelling, &option.about)).collect::<Vec<_>>()
        });
        for (name, about) in commands.chain(options) {
            let _ = writeln!(out, "      @('{name}', '{}')", about.replace('\'', "''"));
        }
        out += "    )\n";
    }
    let end = "  }\n  $page = '@NAME@'\n  foreach ($each in $line.CommandElements | Select-Object -Skip 1) {\n    \
           if ($pages.ContainsKey(\"$page $each\")) { $page = \"$page $each\" }\n  }\n  \
           $pages[$page] | Where-Object { $_[0] -like \"$word*\" } | ForEach-Object {\n    \
           [System.Management.Automation.CompletionResult]::new($_[0], $_[0], 'ParameterName', $(if ($_[1]) { $_[1] } else { $_[0] }))\n  }\n}\n";
    with_names(root, &(out + end))
}
