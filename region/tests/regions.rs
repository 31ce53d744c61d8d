//! Marks do nothing natively; what lightfoot makes of them is tested where lightfoot is.

use lightfoot_region::{region, region_begin, region_end};

#[test]
fn marks_change_nothing() {
    let mut sum = 0_u64;
    region_begin!("sum");
    for number in 0..1000 {
        let _inner = region!("one");
        sum += number;
    }
    region_end!("sum");
    assert_eq!(sum, 499_500);
}
