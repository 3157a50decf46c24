// A string's buffer is handed to C, which terminates what it wrote behind it.
#include <cstring>
#include <string>

#include "lib/hide.h"

NOINLINE static void decorate(char *text, std::size_t n)
{
    std::memcpy(text + n - 1, "!!", 3);
}

int main()
{
    std::string *title = new std::string("The Treachery of Images, 1929"); // @made
#ifdef FIXED
    title->reserve(40);
#endif
    decorate(hide(&(*title)[0]), title->size());
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=30 offset=30 bytes=1 hex=00 api=new alloc:@made call:@LINE+1
    delete title;
    return 0;
}
