// push_back moves the vector's elements; the iterator stays with the old ones.
#include <vector>

#include "lib/hide.h"

struct Sprite {
    int x, y;
};

NOINLINE static int x_of(Sprite *const *s)
{
    // WANT: use-after-free read:@LINE+1
    return (*s)->x;
}

int main()
{
    Sprite player = {5, 6};
    std::vector<Sprite *> sprites;
    sprites.push_back(&player); // @made
    auto first = sprites.begin();
    for (int i = 0; i < 20; i++)
        sprites.push_back(&player); // @moved
#ifdef FIXED
    first = sprites.begin();
#endif
    // HEAP: use-after-free object=8 api=new alloc:@made free:@moved
    return x_of(hide(&*first)) != 5;
}
