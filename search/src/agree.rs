//! Runs the agreement tests with the dummy members of both families: `descending` among the
//! layouts, `backwards` among the kernels. Neither is named here, yet both are built, queried and
//! compared with the reference: a new member needs its file and its entry in the table, and the
//! rest follows.

#[path = "../tests/agreement/mod.rs"]
mod agreement;

use crate::{Index, KERNELS, LAYOUTS};
use agreement::{check, check_index, check_type};

#[test]
fn the_dummy_members_agree_as_every_other_member_does() {
    assert!(LAYOUTS.iter().any(|entry| entry.name == "descending"));
    assert!(KERNELS.iter().any(|isa| isa.name() == "backwards"));
    check_type(u64::from(u32::MAX), "u32", |number| number as u32);
    check_type(u64::MAX, "u64", |number| number);
    check(&[-f64::NAN, -0.0, 0.0, 0.0, f64::NAN], &[f64::NAN, 0.0, 1.0], "f64 specials");
}

#[test]
fn agreement_notices_a_wrong_answer() {
    let keys: Vec<u32> = (0..500).collect();
    let others: Vec<u32> = (0..500).map(|key| key + u32::from(key > 250)).collect();
    let index = Index::build(&others).unwrap();
    check_index(&index, &others, &others, "its own keys");
    let wrong = std::panic::catch_unwind(|| check_index(&index, &keys, &keys, "others"));
    assert!(wrong.is_err());
}
