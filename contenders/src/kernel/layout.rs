//! Particles as an array of structures, and as a structure of arrays.

use super::{Pass, Variant};
use std::hint::black_box;

/// Numbers of a particle.
const FIELDS: usize = 8;

const SMALL: usize = 1 << 12;
const LARGE: usize = 1 << 17;

/// Particles that a pass visits.
const VISITED: usize = 1 << 18;

type Particle = [f64; FIELDS];

pub(super) fn variants() -> Vec<Variant> {
    let structures = [SMALL, LARGE].into_iter().flat_map(|count| {
        [
            structures("one field", count, one_of_structures),
            structures("all fields", count, all_of_structures),
            structures("move", count, move_structures),
        ]
    });
    let arrays = [SMALL, LARGE].into_iter().flat_map(|count| {
        [
            arrays("one field", count, one_of_arrays),
            arrays("all fields", count, all_of_arrays),
            arrays("move", count, move_arrays),
        ]
    });
    structures.chain(arrays).collect()
}

fn structures(name: &str, count: usize, run: fn(&mut [Particle]) -> f64) -> Variant {
    Variant::new("particles", &format!("structures, {name}, {count}"), VISITED, move || -> Pass {
        let mut particles: Vec<Particle> = vec![[0.0; FIELDS]; count];
        particles.iter_mut().for_each(|particle| particle[0] = 1.0);
        Box::new(move || {
            let sum: f64 = (0..VISITED / count).map(|_| run(black_box(&mut particles))).sum();
            sum.to_bits()
        })
    })
}

fn arrays(name: &str, count: usize, run: fn(&mut [Vec<f64>; FIELDS]) -> f64) -> Variant {
    Variant::new("particles", &format!("arrays, {name}, {count}"), VISITED, move || -> Pass {
        let mut fields: [Vec<f64>; FIELDS] = std::array::from_fn(|_| vec![0.0; count]);
        fields[0].fill(1.0);
        Box::new(move || {
            let sum: f64 = (0..VISITED / count).map(|_| run(black_box(&mut fields))).sum();
            sum.to_bits()
        })
    })
}

#[inline(never)]
fn one_of_structures(particles: &mut [Particle]) -> f64 {
    particles.iter().map(|particle| particle[0]).sum()
}

#[inline(never)]
fn all_of_structures(particles: &mut [Particle]) -> f64 {
    let mut sums = [0.0; FIELDS];
    for particle in particles {
        for (sum, field) in sums.iter_mut().zip(particle) {
            *sum += *field;
        }
    }
    sums.iter().sum()
}

/// Adds a velocity of 0, so that every pass finds the same places.
#[inline(never)]
fn move_structures(particles: &mut [Particle]) -> f64 {
    for particle in particles.iter_mut() {
        particle[0] += particle[3];
        particle[1] += particle[4];
    }
    particles[0][0]
}

#[inline(never)]
fn one_of_arrays(fields: &mut [Vec<f64>; FIELDS]) -> f64 {
    fields[0].iter().sum()
}

#[inline(never)]
fn all_of_arrays(fields: &mut [Vec<f64>; FIELDS]) -> f64 {
    fields.iter().map(|field| field.iter().sum::<f64>()).sum()
}

#[inline(never)]
fn move_arrays(fields: &mut [Vec<f64>; FIELDS]) -> f64 {
    let [x, y, _, u, v, ..] = fields;
    x.iter_mut().zip(u.iter()).for_each(|(place, speed)| *place += *speed);
    y.iter_mut().zip(v.iter()).for_each(|(place, speed)| *place += *speed);
    x[0]
}
