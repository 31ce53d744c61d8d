//! Joins profiles that are made by hand, and compares the result with a plain list of all images'
//! blocks.

use super::*;
use crate::profile::{Block, Instruction, Module, Site};
use std::collections::BTreeMap;

/// Where code is mapped: path, start, file offset.
type Mapping = (&'static str, u64, u64);

const PROGRAM: Mapping = ("/bin/program", 0x40_0000, 0x1000);
const LIBRARY: Mapping = ("/lib/library", 0x7f00_0000, 0x2000);
const ELSEWHERE: Mapping = ("/lib/library", 0x7e00_0000, 0x2000);
const GENERATED: Mapping = ("[anonymous]", 0x1000_0000, 0);

const BYTES: u64 = 0x1_0000;

/// A block at `offset` of mapping number `module`: opcodes of one byte each, and the indices of
/// those that have a site.
struct Given {
    module: u32,
    offset: u64,
    opcodes: &'static [u16],
    sites: &'static [u32],
    executions: u64,
}

fn image(mappings: &[Mapping], blocks: &[Given]) -> Profile {
    let mut profile = Profile::default();
    for &(path, start, file_offset) in mappings {
        profile.modules.push(Module {
            path: path.into(),
            start,
            end: start + BYTES,
            file_offset,
            process: None,
        });
    }
    for (number, given) in blocks.iter().enumerate() {
        let ip = mappings[given.module as usize].1 + given.offset;
        let (first, count) = (profile.instructions.len() as u32, given.opcodes.len() as u32);
        let instruction = |(offset, &code): (usize, &u16)| Instruction {
            offset: offset as u16,
            len: 1,
            loads: 1,
            stores: 0,
            code,
        };
        profile.instructions.extend(given.opcodes.iter().enumerate().map(instruction));
        let site = |&index: &u32| Site { ip: ip + u64::from(index), block: number as u32, index };
        profile.sites.extend(given.sites.iter().map(site));
        let executions = given.executions;
        let (module, taken) = (given.module, executions / 2);
        profile.blocks.push(Block { ip, len: count, module, first, count, executions, taken });
    }
    profile
}

/// Counts by the place in a file, or by the address without a file, and by opcode: executions,
/// branches taken, instructions lost, iterations, loads and stores of complex references.
type Sums = BTreeMap<(String, u64, u16), [u64; 6]>;

fn sums(profile: &Profile, sums: &mut Sums) {
    // Images map a file at different addresses, so a place in a file is its offset. Generated code
    // has only its address.
    let key = |block: &Block, index: u32| {
        let Module { path, start, file_offset, .. } = &profile.modules[block.module as usize];
        let i = profile.instructions[(block.first + index) as usize];
        let at = block.ip + u64::from(i.offset);
        let is_file = path.is_absolute();
        (path.display().to_string(), if is_file { at - start + file_offset } else { at }, i.code)
    };
    // A site that was numbered with another image's block would show here.
    let of_site = |site: u32| {
        let site = profile.sites[site as usize];
        let block = &profile.blocks[site.block as usize];
        assert_eq!(site.ip, block.ip + u64::from(site.index), "a site lies in its block");
        key(block, site.index)
    };
    for block in &profile.blocks {
        for index in 0..block.count {
            let sums = sums.entry(key(block, index)).or_default();
            sums[0] += block.executions;
            sums[1] += block.taken;
        }
    }
    for &(block, first_lost, times) in &profile.cut {
        sums.entry(key(&profile.blocks[block as usize], first_lost)).or_default()[2] += times;
    }
    for &(site, iterations) in &profile.repeats {
        sums.entry(of_site(site)).or_default()[3] += iterations;
    }
    for &(site, loads, stores) in &profile.complex {
        let sums = sums.entry(of_site(site)).or_default();
        sums[4] += loads;
        sums[5] += stores;
    }
}

/// Joins images, and checks that no count went anywhere else.
#[track_caller]
fn joined(of_images: BlocksOfImages, images: &[Profile]) -> Profile {
    let images: Vec<_> = images.iter().map(|image| (image.clone(), Lineage::None)).collect();
    joined_lineages(of_images, &images)
}

/// Joins images with their lineages, and checks that no count went anywhere else.
#[track_caller]
fn joined_lineages(of_images: BlocksOfImages, images: &[(Profile, Lineage)]) -> Profile {
    let whole =
        |&(ref image, lineage): &(Profile, Lineage)| (image.clone(), Descent { lineage, blocks: Vec::new() });
    joined_descents(of_images, &images.iter().map(whole).collect::<Vec<_>>())
}

/// Joins images with their descents, and checks that no count went anywhere else.
#[track_caller]
fn joined_descents(of_images: BlocksOfImages, images: &[(Profile, Descent)]) -> Profile {
    let mut joined = JoinedProfile::new(of_images);
    let mut expected = Sums::new();
    for (image, descent) in images {
        sums(image, &mut expected);
        let numbering = joined.number(image, descent);
        let own = |table: usize| 0..table as u32;
        let blocks: Vec<u32> = own(image.blocks.len()).map(|block| numbering.block(block)).collect();
        let sites: Vec<u32> = own(image.sites.len()).map(|site| numbering.site(site)).collect();
        joined.add(image.clone(), numbering.clone(), descent);
        for (block, number) in image.blocks.iter().zip(blocks) {
            assert_eq!(joined.all.blocks[number as usize].len, block.len);
        }
        for (site, number) in image.sites.iter().zip(sites) {
            let joined = joined.all.sites[number as usize];
            assert_eq!((joined.block, joined.index), (numbering.block(site.block), site.index));
        }
    }
    let profile = joined.finish();
    let mut found = Sums::new();
    sums(&profile, &mut found);
    assert_eq!(found, expected);
    profile
}

fn shell() -> Profile {
    let blocks = [
        Given { module: 0, offset: 0x10, opcodes: &[1, 2, 3], sites: &[1], executions: 7 },
        Given { module: 1, offset: 0x20, opcodes: &[4, 5], sites: &[0, 1], executions: 5 },
        Given { module: 0, offset: 0x11, opcodes: &[2, 3], sites: &[0], executions: 2 },
    ];
    let mut image = image(&[PROGRAM, LIBRARY], &blocks);
    image.cut = vec![(1, 1, 3), (0, 2, 1)];
    (image.repeats, image.complex) = (vec![(2, 10)], vec![(1, 4, 5), (2, 6, 0)]);
    image
}

#[test]
fn equal_images_take_the_room_of_one() {
    for count in 1..5 {
        let profile = joined(BlocksOfImages::Merged, &vec![shell(); count]);
        assert_eq!((profile.modules.len(), profile.blocks.len()), (2, 3));
        assert_eq!((profile.instructions.len(), profile.sites.len()), (7, 4));
        assert_eq!((profile.cut.len(), profile.repeats.len(), profile.complex.len()), (2, 1, 2));
        let apart = joined(BlocksOfImages::Apart, &vec![shell(); count]);
        assert_eq!(
            (apart.blocks.len(), apart.sites.len(), apart.cut.len()),
            (3 * count, 4 * count, 2 * count)
        );
    }
}

/// The image of [`shell`] after it has translated this many blocks more.
fn shell_with(more: usize) -> Profile {
    const MORE: [Given; 3] = [
        Given { module: 0, offset: 0x40, opcodes: &[7, 8], sites: &[1], executions: 9 },
        Given { module: 1, offset: 0x50, opcodes: &[9], sites: &[], executions: 0 },
        Given { module: 0, offset: 0x60, opcodes: &[1, 1], sites: &[0, 1], executions: 3 },
    ];
    let mut profile = shell();
    let given = image(&[PROGRAM, LIBRARY], &MORE[..more]);
    let (blocks, first) = (profile.blocks.len() as u32, profile.instructions.len() as u32);
    let block = |block: Block| Block { first: block.first + first, ..block };
    profile.blocks.extend(given.blocks.into_iter().map(block));
    profile.instructions.extend(given.instructions);
    profile.sites.extend(given.sites.into_iter().map(|site| Site { block: site.block + blocks, ..site }));
    profile
}

#[test]
fn the_next_image_of_a_lineage_has_the_numbers_of_the_last() {
    let other = || {
        let given = [Given { module: 0, offset: 0x60, opcodes: &[1, 1], sites: &[0, 1], executions: 4 }];
        (image(&[PROGRAM], &given), Lineage::None)
    };
    let of = |lineage: u32, more: usize| (shell_with(more), Lineage::Image(lineage));
    let images = [of(1, 0), of(1, 1), other(), of(2, 0), of(1, 1), of(1, 3), of(2, 2), of(1, 3), other()];
    let profile = joined_lineages(BlocksOfImages::Merged, &images);
    assert_eq!((profile.modules.len(), profile.blocks.len()), (2, 6));
    let apart = joined_lineages(BlocksOfImages::Apart, &images);
    assert_eq!(apart.blocks.len(), 3 + 4 + 1 + 3 + 4 + 6 + 5 + 6 + 1);
    // More lineages than are remembered.
    let many: Vec<_> = (0..300).map(|number| of(number % 100, number as usize / 100)).collect();
    assert_eq!(joined_lineages(BlocksOfImages::Merged, &many).blocks.len(), 5);
}

/// The blocks of an image with these numbers, as a profile of its own.
fn some_of(image: &Profile, kept: &[u32]) -> Profile {
    let new = |old: u32| kept.iter().position(|&number| number == old).map(|new| new as u32);
    let mut some = Profile { modules: image.modules.clone(), ..Profile::default() };
    for &number in kept {
        let block = &image.blocks[number as usize];
        let first = some.instructions.len() as u32;
        some.instructions.extend(&image.instructions[block.first as usize..][..block.count as usize]);
        some.blocks.push(Block { first, ..block.clone() });
    }
    let of_kept = |site: &Site| new(site.block).map(|block| Site { block, ..*site });
    some.sites = image.sites.iter().filter_map(of_kept).collect();
    let cut = image.cut.iter();
    some.cut = cut.filter_map(|&(block, lost, times)| Some((new(block)?, lost, times))).collect();
    some
}

#[test]
fn images_may_have_some_blocks_of_their_lineage() {
    let descent =
        |lineage: u32, blocks: &[u32]| Descent { lineage: Lineage::Image(lineage), blocks: blocks.to_vec() };
    let some = |lineage: u32, more: usize, blocks: &[u32]| {
        (some_of(&shell_with(more), blocks), descent(lineage, blocks))
    };
    let blocks = |images: &[(Profile, Descent)]| joined_descents(BlocksOfImages::Merged, images).blocks.len();
    assert_eq!(blocks(&[some(1, 0, &[0, 2]), some(1, 0, &[0, 2]), some(1, 0, &[2])]), 2);
    assert_eq!(blocks(&[some(1, 0, &[2]), some(1, 0, &[0, 1]), some(1, 3, &[1, 3, 5])]), 5);
    assert_eq!(blocks(&[some(1, 0, &[2]), some(2, 0, &[0, 2]), some(1, 1, &[0, 3]), some(2, 3, &[0, 3])]), 3);
    // More lineages than are remembered.
    let many: Vec<_> = (0..300)
        .map(|number| some(number % 100, number as usize / 100, &[number % 2, 2 + number / 150]))
        .collect();
    assert_eq!(blocks(&many), 4);
}

#[test]
fn a_library_is_known_at_another_address() {
    let block = |module| Given { module, offset: 0x20, opcodes: &[4, 5], sites: &[0, 1], executions: 5 };
    let other = image(&[ELSEWHERE, PROGRAM], &[block(0)]);
    let profile = joined(BlocksOfImages::Merged, &[shell(), other.clone()]);
    assert_eq!((profile.modules.len(), profile.blocks.len()), (2, 3));
    assert_eq!(profile.blocks[1].ip, LIBRARY.1 + 0x20, "it stands where it was seen first");
    // The other way round.
    let profile = joined(BlocksOfImages::Merged, &[other, shell()]);
    assert_eq!((profile.modules.len(), profile.blocks.len()), (2, 3));
    assert_eq!(profile.blocks[0].ip, ELSEWHERE.1 + 0x20);
}

#[test]
fn what_differs_stays_apart() {
    let other = |mapping, offset, opcodes, sites| {
        let given = [Given { module: 0, offset, opcodes, sites, executions: 1 }];
        joined(BlocksOfImages::Merged, &[shell(), image(&[mapping], &given)]).blocks.len()
    };
    assert_eq!(other(PROGRAM, 0x10, &[1, 2, 3], &[1]), 3);
    assert_eq!(other(PROGRAM, 0x10, &[1, 2, 3], &[2]), 4, "sites");
    assert_eq!(other(PROGRAM, 0x10, &[1, 2, 9], &[1]), 4, "the file was replaced");
    assert_eq!(other(PROGRAM, 0x10, &[1, 2], &[1]), 4, "it ends earlier");
    assert_eq!(other(PROGRAM, 0x12, &[1, 2, 3], &[1]), 4, "offset");
    assert_eq!(other(("/bin/other", PROGRAM.1, PROGRAM.2), 0x10, &[1, 2, 3], &[1]), 4, "path");
    assert_eq!(other((PROGRAM.0, PROGRAM.1, 0x3000), 0x10, &[1, 2, 3], &[1]), 4, "part of the file");
}

#[test]
fn code_without_a_file_goes_by_its_address() {
    let given = || [Given { module: 0, offset: 8, opcodes: &[6], sites: &[], executions: 4 }];
    let here = || image(&[GENERATED], &given());
    let there = || image(&[(GENERATED.0, GENERATED.1 + BYTES, 0)], &given());
    assert_eq!(joined(BlocksOfImages::Merged, &[here(), here()]).blocks.len(), 1);
    assert_eq!(joined(BlocksOfImages::Merged, &[here(), there(), here()]).blocks.len(), 2);
}

#[test]
fn sums_stay_at_the_largest_number() {
    let given = || [Given { module: 0, offset: 8, opcodes: &[6], sites: &[], executions: u64::MAX }];
    let mut joined = JoinedProfile::default();
    for _ in 0..3 {
        let image = image(&[PROGRAM], &given());
        let descent = Descent { lineage: Lineage::None, blocks: Vec::new() };
        let numbering = joined.number(&image, &descent);
        joined.add(image, numbering, &descent);
    }
    assert_eq!(joined.finish().blocks[0].executions, u64::MAX);
}
