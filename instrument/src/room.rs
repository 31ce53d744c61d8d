//! Room for tables that grow long.
//!
//! **Problem.** The tables of a large program have tens of megabytes. While one doubles its room
//! again and again, all of it is copied into fresh memory each time, and the kernel clears every
//! page of that: for a compiler this took as long as emitting its code. **Idea.** A table that
//! proves to be long gets so much room that the allocator maps it alone. Pages that are not touched
//! take no memory, and more room is had by moving the mapping, not its contents.

/// A table of more bytes is long.
const LONG: usize = 1 << 20;
/// The room that a long table gets: more than what the C library ever puts among small blocks.
const ROOM: usize = 40 << 20;

/// Makes room for `more` items behind those of a table.
pub(crate) fn make_room<T>(table: &mut Vec<T>, more: usize) {
    let bytes = size_of::<T>().max(1);
    if table.capacity() - table.len() < more && (table.len() + more) * bytes > LONG {
        table.reserve_exact(more.max(table.len()).max(ROOM / bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_tables_get_much_room() {
        let mut table = vec![0u64; 1000];
        make_room(&mut table, 1000);
        assert!(table.capacity() < 4000);
        let mut table: Vec<u64> = (0..200_000).collect();
        table.shrink_to_fit();
        make_room(&mut table, 1);
        assert!(table.capacity() >= ROOM / 8, "{}", table.capacity());
        let place = table.as_ptr();
        (200_000..ROOM as u64 / 8).for_each(|number| {
            make_room(&mut table, 1);
            table.push(number);
        });
        assert_eq!(table.as_ptr(), place, "nothing was copied");
        assert!(table.iter().copied().eq(0..ROOM as u64 / 8));
    }
}
