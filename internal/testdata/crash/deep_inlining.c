// A null pointer ten inlined calls deep.
#define INLINE static inline __attribute__((always_inline))

struct item {
    int key, value;
};

static struct item *volatile current;
static struct item real = {1, 2};

INLINE int level0(struct item *i)
{
    // WANT: null-pointer read:@LINE+1
    return i->value;
}
INLINE int level1(struct item *i) { return level0(i) + 1; }
INLINE int level2(struct item *i) { return level1(i) * 3; }
INLINE int level3(struct item *i) { return level2(i) - 1; }
INLINE int level4(struct item *i) { return level3(i) ^ 5; }
INLINE int level5(struct item *i) { return level4(i) + 7; }
INLINE int level6(struct item *i) { return level5(i) * 2; }
INLINE int level7(struct item *i) { return level6(i) + 1; }
INLINE int level8(struct item *i) { return level7(i) ^ 9; }
INLINE int level9(struct item *i) { return level8(i) + 2; }

__attribute__((noinline, noipa)) static int outer(struct item *i)
{
    return level9(i) > 0;
}

int main(void)
{
#ifdef FIXED
    current = &real;
#endif
    return outer(current) != 1;
}
