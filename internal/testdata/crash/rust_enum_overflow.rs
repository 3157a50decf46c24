// A recursion over a boxed list without an end.
use std::hint::black_box;

enum Shape {
    Circle(u32),
    Group(Box<Shape>),
}

// WANT: stack-overflow write:@LINE+2..+12
#[inline(never)]
fn area(shape: &Shape, depth: u64) -> u64 {
    let room = black_box([depth; 64]);
    match shape {
        Shape::Circle(radius) => (*radius as u64) + room[3],
        Shape::Group(inner) => if cfg!(fixed) { area(inner, depth + 1) + room[1] } else { area(shape, depth + 1) + room[1] },
    }
}

fn main() {
    let shape = Shape::Group(Box::new(Shape::Circle(2)));
    std::process::exit((black_box(area(&shape, 0)) == 0) as i32);
}
