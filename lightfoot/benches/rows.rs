//! What a profile of 200,000 source lines costs: `cargo bench -p lightfoot --bench rows [--keep
//! FOLDER]`.
//!
//! **What.** A C program of forty files, 8,000 functions and 200,000 statements, each on a line of
//! its own and executed once, is compiled and measured by function, by line and as an HTML page.
//! **Figures.** Symbolising: the run by line less the run by function, best of rounds, in processor
//! time, which a busy machine changes least. The page: its bytes, and, where `chromium` is
//! installed, the time from opening it to the end of its script, and to a click on a column's
//! heading answered. Bars: 2 s, 5 MB, 1 s.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const FILES: usize = 40;
const FUNCTIONS: usize = 200;
const STATEMENTS: usize = 25;
const ROUNDS: usize = 3;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let kept = words.iter().position(|word| word == "--keep").and_then(|at| words.get(at + 1));
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = kept.map_or_else(|| scratch.path().to_path_buf(), PathBuf::from);
    let Some(program) = compile(&folder) else {
        println!("skipped: there is no C compiler here");
        return;
    };
    let [mut function, mut line] = [Duration::MAX; 2];
    let report = folder.join("report.json");
    for _ in 0..ROUNDS {
        for (by, best) in [("function", &mut function), ("line", &mut line)] {
            *best = (*best).min(run(&["--by", by, "--format", "json"], &report, &program));
        }
    }
    let json = std::fs::read(&report).expect("a report");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let rows = json["rows"].as_array().map_or(0, Vec::len);
    println!(
        "{rows} rows: by function {:.2} s of processor time, by line {:.2} s, symbolising {:.2} s",
        function.as_secs_f64(),
        line.as_secs_f64(),
        line.saturating_sub(function).as_secs_f64()
    );
    let page = folder.join("page.html");
    let took = run(&["--format", "html"], &page, &program);
    let bytes = std::fs::metadata(&page).expect("a page").len();
    println!("page: {bytes} bytes, made in {:.2} s of processor time", took.as_secs_f64());
    match opened(&page, &folder) {
        Some(said) => println!("in chromium: {said}"),
        None => println!("in chromium: not measured, there is none here"),
    }
}

/// The program, one file after the other; `None` where nothing compiles.
fn compile(folder: &Path) -> Option<PathBuf> {
    std::fs::create_dir_all(folder).expect("a folder");
    let mut main = String::from("unsigned sum;\nint main(void)\n{\n");
    let mut objects = Vec::new();
    for file in 0..FILES {
        let mut text = String::from("extern unsigned sum;\n");
        for function in 0..FUNCTIONS {
            let _ = writeln!(text, "static void function_{file}_{function}(void)\n{{");
            for statement in 0..STATEMENTS {
                let _ = writeln!(text, "    sum += {};", file * function + statement);
            }
            text += "}\n";
        }
        let _ = writeln!(text, "void all_{file}(void)\n{{");
        for function in 0..FUNCTIONS {
            let _ = writeln!(text, "    function_{file}_{function}();");
        }
        text += "}\n";
        let _ = writeln!(main, "    void all_{file}(void);\n    all_{file}();");
        objects.push(cc(folder, &format!("part{file}"), &text)?);
    }
    main += "    return 0;\n}\n";
    objects.push(cc(folder, "main", &main)?);
    let program = folder.join("rows");
    let linked = Command::new("cc").args(&objects).arg("-o").arg(&program).status().ok()?;
    linked.success().then_some(program)
}

fn cc(folder: &Path, name: &str, text: &str) -> Option<PathBuf> {
    let [source, object] = ["c", "o"].map(|extension| folder.join(name).with_extension(extension));
    std::fs::write(&source, text).expect("a source");
    let ran =
        Command::new("cc").args(["-g", "-O0", "-c"]).arg(source).arg("-o").arg(&object).status().ok()?;
    ran.success().then_some(object)
}

/// Processor time of all processes that were waited for; the kernel counts it in hundredths of a
/// second.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a mounted /proc");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let ticks = fields.split(' ').skip(13).take(2).map(|ticks| ticks.parse::<u64>().expect("a number"));
    Duration::from_millis(10 * ticks.sum::<u64>())
}

fn run(options: &[&str], to: &Path, program: &Path) -> Duration {
    let before = processor_time();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
    command.arg("cache").args(options).arg("-o").arg(to).arg("--").arg(program).stdout(Stdio::null());
    let status = command.env("LIGHTFOOT_TRANSLATIONS", "off").status().expect("lightfoot");
    assert!(status.success(), "{options:?}");
    processor_time() - before
}

/// What the page does when it has drawn itself: notes the time, and sorts by a column.
const PROBE: &str = "<script>
const root = document.documentElement;
root.dataset.drawn = `drawn after ${Math.round(performance.now())} ms`;
const start = performance.now();
document.querySelectorAll('#functions th')[3].click();
document.body.offsetHeight;
root.dataset.sorted = `sorted in ${Math.round(performance.now() - start)} ms`;
</script></html>";

/// What a browser says of the page, best round of all.
fn opened(page: &Path, folder: &Path) -> Option<String> {
    let probed = folder.join("probed.html");
    let text = std::fs::read_to_string(page).expect("a page").replace("</html>", PROBE);
    std::fs::write(&probed, text).expect("a page");
    let value = |dom: &str, name: &str| {
        let (_, rest) = dom.split_once(&format!("data-{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    let milliseconds = |said: &String| said.split(' ').rev().nth(1).and_then(|word| word.parse::<u64>().ok());
    let rounds = (0..ROUNDS).filter_map(|_| {
        let options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"];
        let url = format!("file://{}", probed.display());
        let ran = Command::new("chromium").args(options).arg(url).stderr(Stdio::null()).output().ok()?;
        let dom = String::from_utf8_lossy(&ran.stdout).into_owned();
        Some((value(&dom, "drawn")?, value(&dom, "sorted")?))
    });
    let best = rounds.min_by_key(|(drawn, _)| milliseconds(drawn))?;
    Some(format!("{}, {}", best.0, best.1))
}
