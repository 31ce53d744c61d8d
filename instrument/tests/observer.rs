//! What observers are told, and what a run keeps of images that have ended. An observer that fails
//! ends the program that it observes, whatever that program waits for.

use event::{Counter, Record, RecordKind, Sink, Stream};
use lightfoot_instrument::{
    run, Block, Children, Command, EndedImage, ErrorKind, Observer, Options, Outcome, Profile, Progress,
};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Makes as many children as its first argument says, one after the other. Each makes a thread; one
/// in three ends then, one executes the program anew, and one does so in its parent's memory.
const CHILDREN: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int cell;
static void *in_thread(void *unused) {
    for (int i = 0; i < 100; i++) cell += i;
    return unused;
}
int main(int count, char **words) {
    pthread_t thread;
    pthread_create(&thread, 0, in_thread, 0);
    pthread_join(thread, 0);
    for (int n = atoi(words[1]); n > 0; n--) {
        int child = n % 3 == 2 ? vfork() : fork();
        if (child == 0) {
            if (n % 3 > 0) execl(words[0], words[0], "0", (char *)0);
            in_thread(0);
            _exit(0);
        }
        waitpid(child, 0, 0);
    }
    return 0;
}
"#;

fn compile(name: &str, source: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("observer");
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.canonicalize().unwrap().join(name);
    let file = out.with_extension("c");
    std::fs::write(&file, source).unwrap();
    let built =
        std::process::Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&out).arg(&file).output();
    let built = built.expect("the targets need a C compiler named cc: apt-get install gcc libc6-dev");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    out
}

/// Everything that an observer is told, as checks of its order.
#[derive(Default)]
struct Ends {
    image: u32,
    /// Threads that have made records, with their images.
    seen: HashSet<(u32, u32)>,
    threads: HashSet<(u32, u32)>,
    images: HashSet<u32>,
    /// Instructions of the images that have ended, by their own profiles.
    instructions: u64,
    /// The blocks of all images, with their numbers in the profile of the run.
    blocks: Vec<(u32, Block)>,
    wrong: Vec<String>,
}

impl Ends {
    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(what());
        }
    }
}

impl Observer for Ends {
    fn records(&mut self, thread: u32, _records: &[Record]) {
        let own = (self.image, thread);
        self.seen.insert(own);
        let lives = !self.threads.contains(&own) && !self.images.contains(&self.image);
        self.expect(lives, || format!("records of {own:?} behind its end"));
    }

    fn image(&mut self, number: u32) {
        self.image = number;
    }

    fn thread_ended(&mut self, image: u32, thread: u32) {
        let is_new = self.threads.insert((image, thread)) && !self.images.contains(&image);
        self.expect(is_new, || format!("thread {thread} of image {image} ends twice"));
    }

    fn image_ended(&mut self, image: &EndedImage<'_>) {
        let is_new = self.images.insert(image.number);
        self.expect(is_new, || format!("image {} ends twice", image.number));
        self.instructions += image.profile.instructions_retired();
        let numbered = image.profile.blocks.iter().zip(0..);
        self.blocks.extend(numbered.map(|(block, own)| (image.numbering.block(own), block.clone())));
    }
}

fn followed(program: &Path, children: u32, stream: Stream, observer: &mut dyn Observer) -> Outcome {
    let command = Command { program: program.into(), arguments: vec![children.to_string().into()] };
    run(&command, &Options { stream, children: Children::Followed, ..Options::default() }, observer).unwrap()
}

#[test]
fn each_thread_and_each_image_ends_once() {
    let program = compile("ends", CHILDREN);
    for stream in [Stream::Counts, Stream::Full] {
        let mut ends = Ends::default();
        let outcome = followed(&program, 6, stream, &mut ends);
        assert_eq!(ends.wrong, Vec::<String>::new());
        // Two children end, two execute; two more execute without an image before.
        assert_eq!((outcome.processes.len(), ends.images.len()), (7, 1 + 2 + 2 * 2 + 2));
        let of_processes = outcome.processes.iter().flat_map(|process| process.images.iter().copied());
        assert_eq!(of_processes.collect::<HashSet<u32>>(), ends.images);
        assert_eq!(ends.instructions, outcome.profile.instructions_retired());
        let mut executions = vec![0; outcome.profile.blocks.len()];
        for (number, own) in &ends.blocks {
            let known = &outcome.profile.blocks[*number as usize];
            assert_eq!((known.len, known.count), (own.len, own.count));
            executions[*number as usize] += own.executions;
        }
        assert!(outcome.profile.blocks.iter().map(|block| block.executions).eq(executions));
        // The program and each that was executed have a second thread; two children were threads
        // of the program before they executed. An image's last thread ends with the image.
        assert_eq!(ends.threads.len(), 5 + 2);
        if stream == Stream::Full {
            assert_eq!(ends.seen.len(), ends.threads.len() + ends.images.len());
        }
    }
}

/// Counts the records that it receives.
#[derive(Default)]
struct Kinds(Counter);

impl Observer for Kinds {
    fn records(&mut self, thread: u32, records: &[Record]) {
        self.0.records(thread, records);
    }
}

#[test]
fn records_are_counted_by_kind() {
    let program = compile("kinds", CHILDREN);
    for stream in [Stream::Counts, Stream::Full] {
        let mut kinds = Kinds::default();
        let outcome = followed(&program, 3, stream, &mut kinds);
        assert_eq!(outcome.records, kinds.0);
        let seen = |kind| outcome.records.count(kind) > 0;
        assert!(stream != Stream::Full || (seen(RecordKind::Load) && seen(RecordKind::Block)));
    }
}

/// The entries of all tables of a profile.
fn entries(profile: &Profile) -> [usize; 7] {
    let Profile { modules, blocks, instructions, sites, cut, repeats, complex } = profile;
    [modules.len(), blocks.len(), instructions.len(), sites.len(), cut.len(), repeats.len(), complex.len()]
}

#[test]
fn many_children_take_the_room_of_a_few() {
    let program = compile("many", CHILDREN);
    let [few, many] = [6, 60].map(|children| {
        let mut ends = Ends::default();
        let profile = followed(&program, children, Stream::Counts, &mut ends).profile;
        (entries(&profile), profile.instructions_retired() / u64::from(children))
    });
    // Which thread comes to new code first may decide where a block ends.
    for (few, many) in few.0.into_iter().zip(many.0) {
        assert!(many * 10 <= few * 11 + 10, "{few:?} {many:?}");
    }
    assert!(many.1 * 2 > few.1, "all of them were counted: {few:?} {many:?}");
}

/// Fails when it is told of progress.
struct Fails;

impl Observer for Fails {
    fn records(&mut self, _thread: u32, _records: &[Record]) {}

    fn progress(&mut self, _progress: &Progress) {
        panic!("an observer of this test fails, as it should");
    }
}

#[test]
fn a_program_that_would_sleep_on_ends_with_its_observer() {
    let command = Command { program: "sleep".into(), arguments: vec!["100000".into()] };
    for stream in [Stream::Counts, Stream::Full] {
        let ran = run(&command, &Options { stream, ..Options::default() }, &mut Fails);
        let error = ran.expect_err("its observer failed");
        assert_eq!(error.kind(), ErrorKind::System);
        assert!(error.to_string().contains("analysis"), "{error}");
    }
}
