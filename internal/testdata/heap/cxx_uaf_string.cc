// A string on the heap is deleted, and its text asked for.
#include <string>

#include "lib/hide.h"

NOINLINE static char first_of(const std::string *s)
{
    // WANT: use-after-free read:@LINE+1
    return *hide(s->data());
}

// With optimisation the lines of a destructor and of the call behind it lie at
// one address, and debuggers choose the destructor's.
PLAIN static void destroy(const std::string *s)
{
    delete s; // @freed
}

int main()
{
    std::string *name = hide(new std::string("a name of more than fifteen letters")); // @made
#ifdef FIXED
    char c = first_of(name);
    destroy(name);
#else
    destroy(name); // @destroyed
    // HEAP: use-after-free object=32 api=new alloc:@made free:@freed<@destroyed
    char c = first_of(hide(name));
#endif
    return c != 'a';
}
