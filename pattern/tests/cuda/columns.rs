//! Columns on the card: the rows that the processor finds.

use crate::cards::{cards, shapes, turn};
use crate::drawn::Random;
use crate::missing::sentence;
use crate::texts::{program, text, PATTERNS};
use lightfoot_pattern::column::{Column, ColumnOnCard, ColumnRegex, RegexOnCard};
use lightfoot_pattern::kernel::cuda::{EmptyRows, GpuColumn, GpuProgram, GpuText, Reach, RowOffsets};

/// Ends of rows of a text: many of them empty or short, some long, with anything within.
fn ends(bytes: usize, first: usize, random: &mut Random) -> Vec<i64> {
    let mut ends = vec![first as i64];
    let mut at = first;
    while at < bytes {
        let length = match random.below(12) {
            0..3 => 0,
            3 => random.below(5000),
            _ => random.below(50),
        };
        at = (at + length).min(bytes);
        ends.push(at as i64);
    }
    ends
}

#[test]
fn rows_are_those_of_the_processor() {
    let _turn = turn();
    for (shape, options) in shapes().into_iter().enumerate() {
        for cuda in cards(&options) {
            let chosen = PATTERNS.iter().enumerate().filter(|(number, _)| shape == 0 || number % 4 == shape);
            for (number, pattern) in chosen {
                let mut random = Random(3 + number as u64);
                let values = text(30_000, 50 + number as u64);
                let first = random.below(100);
                let wide = ends(values.len(), first, &mut random);
                let narrow: Vec<i32> = wide.iter().map(|&end| end as i32).collect();
                let valid: Vec<u8> = (0..wide.len() / 8 + 2).map(|_| random.below(256) as u8).collect();
                let regex = ColumnRegex::new(pattern).unwrap();
                let on_card = match RegexOnCard::new(&cuda, &regex) {
                    Ok(on_card) => on_card,
                    Err(error) => {
                        assert!(sentence(&error).contains("no program decides"), "{pattern}: {error}");
                        continue;
                    }
                };
                for column in [
                    Column::new(&values, &narrow).unwrap(),
                    Column::with_large_offsets(&values, &wide).unwrap(),
                    Column::with_large_offsets(&values, &wide).unwrap().with_validity(&valid, 3).unwrap(),
                ] {
                    let uploaded = ColumnOnCard::upload(&cuda, &column).unwrap();
                    assert_eq!(
                        (uploaded.len(), uploaded.total_bytes()),
                        (column.len(), values.len() - first)
                    );
                    let found = on_card.scan(&uploaded).unwrap();
                    assert!(found == regex.scan(&column), "{pattern:?} on {}", cuda.card().name);
                }
            }
        }
    }
}

#[test]
fn views_and_columns_of_nothing() {
    let _turn = turn();
    for cuda in cards(&shapes()[0]) {
        let mut long = [0; 16];
        (long[0], long[12]) = (15, 2);
        let views = [*b"\x05\0\0\0hello\0\0\0\0\0\0\0", long, [0; 16]];
        let buffers: [&[u8]; 1] = [b"a string of some length"];
        let columns = [
            Column::from_views(&views, &buffers).unwrap(),
            Column::new(b"", &[0]).unwrap(),
            Column::new(b"abc", &[2]).unwrap(),
            Column::new(b"abc", &[1; 71]).unwrap(),
        ];
        for pattern in ["l", "^$", "s.*e", "x"] {
            let regex = ColumnRegex::new(pattern).unwrap();
            let on_card = RegexOnCard::new(&cuda, &regex).unwrap();
            for column in &columns {
                let uploaded = ColumnOnCard::upload(&cuda, column).unwrap();
                assert_eq!(uploaded.is_empty(), column.is_empty());
                assert!(on_card.scan(&uploaded).unwrap() == regex.scan(column), "{pattern}");
            }
        }
    }
}

#[test]
fn texts_and_columns_are_not_mixed_up() {
    let _turn = turn();
    for cuda in cards(&shapes()[0]) {
        let column = GpuColumn::upload(&cuda, b"abc", RowOffsets::Narrow(&[0, 3])).unwrap();
        let of_lines = GpuProgram::new(&cuda, &program("b"), Reach::Line).unwrap();
        let error = of_lines.matching_rows(&column, EmptyRows::Differ).unwrap_err();
        assert!(sentence(&error).contains("about the lines of texts"), "{error}");
        let hir = regex_syntax::parse("b").unwrap();
        let rows = lightfoot_pattern::compile::CompileOptions {
            haystack: lightfoot_pattern::compile::Haystack::MarkedRow { line_end: b'\n' },
            ..Default::default()
        };
        let of_rows = lightfoot_pattern::compile::compile(&hir, &rows).unwrap();
        let of_rows = GpuProgram::new(&cuda, &of_rows, Reach::Line).unwrap();
        let text = GpuText::upload(&cuda, b"abc\n", b'\n').unwrap();
        assert!(sentence(&of_rows.count_lines(&text).unwrap_err()).contains("about the rows of columns"));
    }
}
