//! Stream files: round trips, cuts, damage.

use lightfoot_event::file::{Ending, FileError, Header, Reader, Writer};
use lightfoot_event::{
    Block, Collector, FetchFilter, Filter, ModifyFilter, PageFilter, Record, SetFilter, Site, Sites,
    StateLayout, StoreFilter, Stream,
};
use proptest::prelude::*;

fn stream() -> impl Strategy<Value = Stream> {
    let shape =
        || (0u32..12, 4u32..13).prop_map(|(sets, line)| SetFilter { sets: 1 << sets, line_bytes: 1 << line });
    let pages = || prop::option::of(shape());
    let fetches = prop_oneof![
        Just(FetchFilter::LastOfSet),
        (2u32..3000, 0u32..3000)
            .prop_map(|(line_ways, page_ways)| FetchFilter::FirstLevel { line_ways, page_ways })
    ];
    let filter = (shape(), shape(), pages(), pages(), any::<bool>(), fetches, (0u32..300, 0usize..3))
        .prop_map(|(data, mut instruction, data_page, instruction_page, like, fetches, (ways, modifies))| {
            let modifies = [ModifyFilter::Both, ModifyFilter::StoreAlone, ModifyFilter::LoadAlone][modifies];
            let stores = if like { StoreFilter::LikeLoads } else { StoreFilter::NeverEnter };
            if fetches != FetchFilter::LastOfSet {
                instruction.sets += 1;
            }
            let pages = match data_page {
                Some(_) if ways > 0 => PageFilter::FirstLevel { ways },
                _ => PageFilter::LastOfSet,
            };
            Stream::Filtered(Filter {
                data,
                instruction,
                data_page,
                instruction_page,
                stores,
                fetches,
                pages,
                modifies,
            })
        });
    prop_oneof![
        Just(Stream::Nothing),
        Just(Stream::Counts),
        Just(Stream::Full),
        Just(Stream::References),
        filter
    ]
}

fn batches() -> impl Strategy<Value = Vec<(u32, Vec<Record>)>> {
    let record = (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(address, what, extra)| Record {
        address,
        what,
        extra,
    });
    prop::collection::vec((0u32..3, prop::collection::vec(record, 1..20)), 0..10)
}

fn tables(count: u32) -> Sites {
    Sites {
        sites: (0..count).map(|n| Site { ip: 1 << 40 | u64::from(n), block: n / 3, index: n % 3 }).collect(),
        blocks: (0..count / 3).map(|n| Block { ip: n.into(), len_bytes: n + 1, instructions: 3 }).collect(),
    }
}

/// The file of `batches`, the tables growing on the way.
fn write(stream: Stream, batches: &[(u32, Vec<Record>)]) -> Vec<u8> {
    let header = Header { stream, layout: StateLayout::default() };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for (index, (thread, records)) in batches.iter().enumerate() {
        writer.tables(&tables(index as u32 * 7)).unwrap();
        writer.records(*thread, records).unwrap();
    }
    writer.finish().unwrap()
}

proptest! {
    #[test]
    fn what_is_written_is_read(stream in stream(), batches in batches()) {
        let file = write(stream, &batches);
        let mut reader = Reader::new(file.as_slice()).unwrap();
        prop_assert_eq!(*reader.header(), Header { stream, layout: StateLayout::default() });
        for (thread, records) in &batches {
            let batch = reader.batch().unwrap().unwrap();
            prop_assert_eq!((&batch.thread, &batch.records), (thread, records));
        }
        prop_assert_eq!(reader.batch().unwrap(), None);
        prop_assert_eq!(reader.ending(), Some(Ending::Complete));
        let grown = batches.len().saturating_sub(1) as u32 * 7;
        prop_assert_eq!(reader.sites(), &tables(grown));
    }

    #[test]
    fn a_cut_file_is_read_up_to_the_cut(batches in batches(), part in 0.0f64..1.0) {
        let file = write(Stream::Full, &batches);
        let cut = (file.len() as f64 * part) as usize;
        match Reader::new(&file[..cut]) {
            Err(error) => prop_assert!(matches!(error, FileError::NotAStream | FileError::Header)),
            Ok(mut reader) => {
                let mut whole = Collector::default();
                let mut read = Collector::default();
                Reader::new(file.as_slice()).unwrap().replay(&mut whole).unwrap();
                let ending = reader.replay(&mut read).unwrap();
                prop_assert!(matches!(ending, Ending::Cut(_) | Ending::Unfinished), "{:?}", ending);
                for (thread, records) in &read.threads {
                    prop_assert!(whole.threads[thread].starts_with(records));
                }
            }
        }
    }

    #[test]
    fn damage_is_seen(batches in batches(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut file = write(Stream::Full, &batches);
        let whole = file.clone();
        let at = at.index(file.len());
        file[at] ^= 1 << bit;
        let Ok(mut reader) = Reader::new(file.as_slice()) else { return Ok(()) };
        let (mut read, mut expected) = (Collector::default(), Collector::default());
        let ending = reader.replay(&mut read).unwrap();
        Reader::new(whole.as_slice()).unwrap().replay(&mut expected).unwrap();
        // The header has no checksum; everything behind it either ends the stream or is intact.
        if ending == Ending::Complete {
            prop_assert_eq!(read, expected);
        }
    }
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(Reader::new(&b""[..]), Err(FileError::NotAStream)));
    assert!(matches!(Reader::new(&b"\x7fELF\x02\x01\x01\x00rest"[..]), Err(FileError::NotAStream)));
    let mut file = write(Stream::Counts, &[]);
    file[8] = 9;
    assert!(matches!(Reader::new(file.as_slice()), Err(FileError::Version(9))));
    file[8] = 1;
    file[12] = 77;
    assert!(matches!(Reader::new(file.as_slice()), Err(FileError::Header)));
}
