// A File is used as an AsciiArt: the call is past the end of its virtual table.
#include <cstdio>
#include <cstdlib>
class File { public: File() : kind(0) {} virtual ~File() {} virtual int size() { return kind; } int kind; };
class AsciiArt : public File { public: AsciiArt() : w(3) {} virtual void print() { printf("%d\n", w); } virtual void print2() { printf("%d\n", w); } int w; };
static File *make(int art) { if (art == 2) return new AsciiArt; return new File; }
static void show(File *f) { static_cast<AsciiArt *>(f)->print(); }      // crashes here
int main(int argc, char **argv)
{
    int art = argc > 1 ? atoi(argv[1]) : 1;
    File *f = make(art);                                              // a File
    if (art)                                                          // FLAW: art == 2
        show(f);
    delete f;
    return 0;
}
