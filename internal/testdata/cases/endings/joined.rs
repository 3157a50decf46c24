// A thread panics, and the thread that joins it unwraps the result: the panic of the first is the failure.
use std::collections::HashMap;
use std::thread;

fn look(ports: &HashMap<String, u16>, name: &str) -> Option<u16> {
    ports.get(name).copied()
}

fn main() {
    let mut ports = HashMap::new();
    ports.insert(String::from("http"), 80u16);
    let worker = thread::spawn(move || {
        let port = look(&ports, "gopher").unwrap();
        port + 1
    });
    println!("{}", worker.join().unwrap());
}
