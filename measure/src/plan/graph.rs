//! Greedy colouring of a conflict graph: the vertex whose neighbours have most colours first
//! (DSATUR, Brélaz 1979).

use std::collections::BTreeSet;

/// Classes of vertices without an edge inside, each ascending.
pub(super) fn colour(vertices: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut neighbours = vec![BTreeSet::new(); vertices];
    for &(a, b) in edges {
        neighbours[a].insert(b);
        neighbours[b].insert(a);
    }
    let mut colours: Vec<Option<usize>> = vec![None; vertices];
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for _ in 0..vertices {
        // Colours of its neighbours: the vertex with most of them has the least choice.
        let taken = |vertex: usize| -> BTreeSet<usize> {
            neighbours[vertex].iter().filter_map(|&other| colours[other]).collect()
        };
        let free = (0..vertices).filter(|&vertex| colours[vertex].is_none());
        let weight = |&vertex: &usize| (taken(vertex).len(), neighbours[vertex].len(), vertices - vertex);
        let Some(vertex) = free.max_by_key(weight) else { break };
        let taken = taken(vertex);
        // The first colour that no neighbour has, or a new one.
        let colour = (0..=classes.len()).find(|colour| !taken.contains(colour)).unwrap_or(classes.len());
        if colour == classes.len() {
            classes.push(Vec::new());
        }
        classes[colour].push(vertex);
        colours[vertex] = Some(colour);
    }
    classes.iter_mut().for_each(|class| class.sort_unstable());
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_graphs() {
        assert_eq!(colour(0, &[]), Vec::<Vec<usize>>::new());
        assert_eq!(colour(3, &[]), [vec![0, 1, 2]]);
        assert_eq!(colour(3, &[(0, 1), (1, 2), (0, 2)]).len(), 3);
        // A crown, on which greedy colouring in order takes four colours.
        let crown: Vec<(usize, usize)> =
            (0..4).flat_map(|a| (0..4).filter(move |&b| a != b).map(move |b| (2 * a, 2 * b + 1))).collect();
        assert_eq!(colour(8, &crown).len(), 2);
    }

    proptest! {
        #[test]
        fn classes_are_free_of_edges(edges in prop::collection::vec((0..9_usize, 0..9_usize), 0..20)) {
            let edges: Vec<(usize, usize)> = edges.into_iter().filter(|(a, b)| a != b).collect();
            let classes = colour(9, &edges);
            prop_assert_eq!(classes.iter().map(Vec::len).sum::<usize>(), 9);
            for (a, b) in edges {
                prop_assert!(!classes.iter().any(|class| class.contains(&a) && class.contains(&b)));
            }
        }
    }
}
