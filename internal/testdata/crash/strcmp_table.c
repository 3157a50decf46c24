// A search through a table that has a hole.
#include <string.h>

struct item {
    const char *key;
    int value;
};

static struct item items[4] = {{"a", 1}, {"b", 2}, {0, 0}, {"d", 4}};
static const char *volatile wanted = "d";

__attribute__((noinline, noipa)) static int find(const char *key)
{
    for (int i = 0; i < 4; i++)
        // WANT: null-pointer read:@LINE+1
        if (strcmp(items[i].key, key) == 0)
            return items[i].value;
    return 0;
}

int main(void)
{
#ifdef FIXED
    items[2].key = "c";
#endif
    return find(wanted) != 4;
}
