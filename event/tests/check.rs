//! The checker finds each fault, and none where there is none; the decoder counts instructions.

use lightfoot_event::{
    Access, Block, Check, Complex, Decoder, Direction, Fault, FetchFilter, Filter, Malformed, ModifyFilter,
    PageFilter, Record, RecordKind, ReferenceKind, SetFilter, Shape, Sink, Site, Sites, StateLayout,
    StoreFilter, Stream, CUT_SITE,
};

const SHAPE: SetFilter = SetFilter { sets: 8, line_bytes: 64 };
const FILTERED: Stream = Stream::Filtered(Filter {
    data: SHAPE,
    instruction: SHAPE,
    data_page: None,
    instruction_page: None,
    stores: StoreFilter::LikeLoads,
    fetches: FetchFilter::LastOfSet,
    pages: PageFilter::LastOfSet,
    modifies: ModifyFilter::Both,
});

/// Two blocks of three instructions; sites 0 and 1 in the first (instructions 0 and 2), site 2 in
/// the second.
fn sites() -> Sites {
    let block = |ip| Block { ip, len_bytes: 10, instructions: 3 };
    let site = |ip, block, index| Site { ip, block, index };
    Sites {
        sites: vec![site(0x100, 0, 0), site(0x107, 0, 2), site(0x204, 1, 1)],
        blocks: vec![block(0x100), block(0x200)],
    }
}

fn block(number: u32, address: u64) -> Record {
    Record { extra: 10, ..Record::new(RecordKind::Block, 0, number, address).unwrap() }
}

fn load(site: u32) -> Record {
    Record::new(RecordKind::Load, 8, site, 0x5000).unwrap()
}

fn faults(stream: Stream, records: &[Record]) -> Vec<Fault> {
    let mut check = Check::new(stream, Some(sites()));
    check.records(3, records);
    check.finish();
    assert_eq!(check.violation_count as usize, check.violations.len());
    check.violations.iter().map(|violation| violation.fault).collect()
}

#[test]
fn a_healthy_stream_has_no_faults() {
    let cut = Record::new(RecordKind::Block, 0, CUT_SITE as u32, 2).unwrap();
    let full = [block(0, 0x100), load(0), load(0), load(1), block(1, 0x200), load(2), cut, block(0, 0x100)];
    assert_eq!(faults(Stream::Full, &full), []);
    let fetch = Record::new(RecordKind::Fetch, 0, 1, 0x200).unwrap();
    assert_eq!(faults(FILTERED, &[fetch, load(2), load(0)]), []);
}

#[test]
fn every_fault_is_found() {
    let fetch = |address| Record::new(RecordKind::Fetch, 0, 1, address).unwrap();
    assert_eq!(faults(Stream::Full, &[fetch(0x200)]), [Fault::Kind(RecordKind::Fetch)]);
    assert_eq!(faults(FILTERED, &[block(0, 0x100)]), [Fault::Kind(RecordKind::Block)]);
    assert_eq!(faults(Stream::Counts, &[load(0)]), [Fault::Kind(RecordKind::Load)]);
    assert_eq!(faults(FILTERED, &[fetch(0x201)]), [Fault::Unaligned]);
    let page = |address| Record::new(RecordKind::FetchPage, 0, 1, address).unwrap();
    assert_eq!(faults(FILTERED, &[page(0x1000)]), [Fault::Kind(RecordKind::FetchPage)]);
    assert_eq!(faults(Stream::Full, &[page(0x1000)]), [Fault::Kind(RecordKind::FetchPage)]);
    let Stream::Filtered(filter) = FILTERED else { unreachable!("it is filtered") };
    let fetches = FetchFilter::FirstLevel { line_ways: 8, page_ways: 4 };
    let pages = Some(SetFilter { sets: 3, line_bytes: 4096 });
    let kept = Stream::Filtered(Filter { fetches, instruction_page: pages, ..filter });
    assert_eq!(faults(kept, &[fetch(0x240), page(0x1000), page(0x1040)]), [Fault::Unaligned]);
    let page = |address| Record::new(RecordKind::DataPage, 0, 1, address).unwrap();
    assert_eq!(faults(FILTERED, &[page(0x1000)]), [Fault::Kind(RecordKind::DataPage)]);
    let resident = Filter { pages: PageFilter::FirstLevel { ways: 4 }, data_page: pages, ..filter };
    let resident = Stream::Filtered(resident);
    assert_eq!(faults(resident, &[page(0x1000), page(0x1040)]), [Fault::Unaligned]);
    assert_eq!(faults(FILTERED, &[load(3)]), [Fault::Unknown(3)]);
    let sizeless = Record { what: 0x0f, ..load(0) };
    assert_eq!(faults(FILTERED, &[sizeless]), [Fault::Size(0x0f)]);
    let foreign = Fault::ForeignBlock { site: 1, running: Some(0) };
    assert_eq!(faults(Stream::Full, &[block(0, 0x100), load(2)]), [foreign]);
    assert_eq!(faults(Stream::Full, &[block(0, 0x100), load(1), load(0)]), [Fault::Backwards]);
    let cut = Record::new(RecordKind::Block, 0, CUT_SITE as u32, 4).unwrap();
    assert_eq!(faults(Stream::Full, &[block(0, 0x100), cut]), [Fault::Cut(4)]);
    let mut group = Vec::new();
    Complex::new(Shape::Tile { direction: Direction::Load }, &[0, 64, 2, 64]).encode(0, &mut group);
    assert_eq!(faults(FILTERED, &group[1..2]), [Fault::Group(Malformed::NotComplex)]);
    assert_eq!(faults(FILTERED, &group[..2]), [Fault::Group(Malformed::Values(0, 0))]);
    group[2] = load(0);
    assert_eq!(faults(FILTERED, &group[..3]), [Fault::Group(Malformed::Values(2, 4))]);
}

#[test]
fn the_decoder_counts_instructions() {
    let cut = Record::new(RecordKind::Block, 0, CUT_SITE as u32, 2).unwrap();
    let modify = Record::new(RecordKind::Modify, 4, 2, 0x6000).unwrap();
    let stream = [block(0, 0x13c), load(1), cut, block(1, 0x200), modify];
    let mut decoder = Decoder::new(0, 64, StateLayout::default());
    let mut found = Vec::new();
    for record in &stream {
        let emit = |reference: lightfoot_event::Reference| {
            found.push((reference.instruction, reference.ip, reference.address, reference.kind));
        };
        decoder.decode(record, &sites(), emit).unwrap();
    }
    use ReferenceKind::{Data, Fetch};
    assert_eq!(
        found,
        [
            (Some(0), 0x100, 0x100, Fetch),
            (Some(0), 0x100, 0x140, Fetch),
            (Some(2), 0x107, 0x5000, Data(Access::Load)),
            (Some(1), 0x200, 0x200, Fetch),
            (Some(2), 0x204, 0x6000, Data(Access::Load)),
            (Some(2), 0x204, 0x6000, Data(Access::Store)),
        ]
    );
    assert_eq!(decoder.instructions(), 4);
}
