// Variables of Rust and of its standard library.
#[derive(Clone)]
enum Shape {
    Empty,
    Circle(f64),
    Rect { width: u32, height: u32 },
}

struct Point {
    x: i16,
    y: i16,
}

struct Job<'a> {
    name: String,
    tag: &'a str,
    points: Vec<Point>,
    shape: Shape,
    parent: Option<Box<Point>>,
}

#[inline(never)]
fn crash(at: usize) {
    unsafe { std::ptr::write_volatile(std::hint::black_box(at) as *mut i32, 1) }
}

#[inline(never)]
fn inspect(job: &Job, number: i64, letter: char) -> i64 {
    let small: u8 = 200;
    let negative: i8 = -7;
    let flag = number > 1;
    let text = String::from("h\u{e9}llo");
    let numbers: Vec<i32> = vec![1, 2, 3];
    let slice: &[i32] = &numbers[1..];
    let array = [5u16; 6];
    let tuple = (1u8, -2i32);
    let some: Option<i32> = Some(number as i32);
    let none: Option<i32> = None;
    let reference: Option<&i64> = Some(&number);
    let nothing: Option<&i64> = None;
    let empty = Shape::Empty;
    let circle = Shape::Circle(1.5);
    let unit = ();
    crash((number - number) as usize);
    let _ = (&empty, &circle, unit, reference, nothing, none, tuple, array, slice, negative, flag);
    small as i64 + text.len() as i64 + some.unwrap() as i64 + letter as i64 + job.points.len() as i64
}

fn main() {
    let job = Job {
        name: String::from("worker"),
        tag: "urgent",
        points: vec![Point { x: 1, y: -1 }, Point { x: 2, y: -2 }],
        shape: Shape::Rect { width: 3, height: 4 },
        parent: Some(Box::new(Point { x: 8, y: 9 })),
    };
    let n = std::env::args().count() as i64 + 41;
    std::process::exit(inspect(&job, n, '\u{20ac}') as i32 + job.name.len() as i32 + job.tag.len() as i32
        + job.points[0].x as i32 + job.points[0].y as i32 + matches!(job.shape, Shape::Rect { width: 3, height: 4 }) as i32
        + job.parent.map(|p| p.x + p.y).unwrap() as i32);
}
