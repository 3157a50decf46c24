// The Writer of a Tape is used as a Disk.
#include <cstdio>
#include <cstdlib>
struct Reader { virtual ~Reader() {} virtual int get() { return 1; } int r = 0; };
struct Writer { virtual ~Writer() {} virtual void put(int v) { w = v; } int w = 0; };
struct Tape : Reader, Writer { void put(int v) override { w = v + 1; } int pos = 0; };
struct Disk : Reader, Writer { virtual void seek(int where); virtual void sync(); void put(int v) override { w = v + 2; } int head = 0; int *track = nullptr; };
void Disk::seek(int where) { head = where; }
void Disk::sync() { *track = head; }
__attribute__((noinline)) static Writer *choose(int n) { if (n > 3) return new Disk; return new Tape; }
__attribute__((noinline)) static void finish(Writer *out)
{
    Disk *disk = static_cast<Disk *>(out);
    disk->put(3);
    disk->sync();
}
int main(int argc, char **argv)
{
    Writer *out = choose(argc);
    finish(out);
    delete out;
    return 0;
}
