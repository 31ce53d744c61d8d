//! Which task ran when: start times as keys, ranks as positions in a column beside them.
//!
//! `cargo run -p lightfoot-search --example lookup`

use lightfoot_search::{Error, Index, Map};

fn main() -> Result<(), Error> {
    // Sorted start times, and what began then. Two tasks began at second 25.
    let started_s = [10u32, 25, 25, 70];
    let task = ["boot", "login", "sync", "idle"];
    let index = Index::build(&started_s)?;

    // The last task that began at or before a second.
    for second in [5, 10, 30, 90] {
        match index.upper_bound(second).checked_sub(1) {
            Some(rank) => println!("second {second:2}: {}", task[rank]),
            None => println!("second {second:2}: nothing ran yet"),
        }
    }
    assert_eq!(index.equal_range(25), 1..3);
    assert_eq!(index.range(20..80).collect::<Vec<_>>(), [25, 25, 70]);

    // A map holds the second column too, and sorts both.
    let map = Map::build_unsorted(vec![(70u32, "idle"), (10, "boot"), (25, "login"), (25, "sync")])?;
    assert_eq!(map.get_all(25), ["login", "sync"]);
    assert_eq!(map.range(..26).map(|(_, task)| *task).collect::<Vec<_>>(), ["boot", "login", "sync"]);

    // Why the index looks as it does: four keys are one line of memory.
    print!("\n{}", index.explain());
    Ok(())
}
