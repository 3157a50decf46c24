// Assembler without call frame information between the program's functions.
static int *volatile cell;
static int real = 1;

int through_assembler(int (*f)(int *), int *arg);
int through_frame_pointer(int (*f)(int *), int *arg);

__asm__(".text\n"
        ".globl through_assembler\n.type through_assembler, @function\n"
        "through_assembler:\n"
        "  push %rbx\n  sub $0x30, %rsp\n  mov %rdi, %rax\n  mov %rsi, %rdi\n  call *%rax\n"
        "  add $0x30, %rsp\n  pop %rbx\n  ret\n"
        ".size through_assembler, . - through_assembler\n"
        ".globl through_frame_pointer\n.type through_frame_pointer, @function\n"
        "through_frame_pointer:\n"
        "  push %rbp\n  mov %rsp, %rbp\n  and $-64, %rsp\n  sub $0x140, %rsp\n"
        "  mov %rdi, %rax\n  mov %rsi, %rdi\n  call *%rax\n  leave\n  ret\n"
        ".size through_frame_pointer, . - through_frame_pointer\n");

__attribute__((noinline, noipa)) static int leaf(int *p)
{
    // WANT: null-pointer read:@LINE+1
    return *p + 1;
}

__attribute__((noinline, noipa)) static int middle(int *p)
{
    return through_assembler(leaf, p) + 1;
}

__attribute__((noinline, noipa)) static int outer(int *p)
{
    return through_frame_pointer(middle, p) + 1;
}

int main(void)
{
#ifdef FIXED
    cell = &real;
#endif
    return outer(cell) != 4;
}
