// The text that strdup made is deleted by its C++ owner, in a thread.
// FLAGS: -pthread
#include <cstdlib>
#include <cstring>
#include <pthread.h>

#include "lib/hide.h"

static void *owner(void *text)
{
    char *mine = static_cast<char *>(text);
#ifdef FIXED
    std::free(mine);
#else
    // WANT: mismatched-free:@LINE+2
    // HEAP: mismatched-free object=8 api=malloc alloc:@made(main) call:@LINE+1(owner)
    delete mine;
#endif
    return nullptr;
}

int main()
{
    char *text = hide(strdup("mercury")); // @made
    pthread_t t;
    pthread_create(&t, nullptr, owner, text);
    return pthread_join(t, nullptr);
}
