/* What the tool and the process of the debug code share. sandbox/layout.go mirrors it, and layout_test.go compares the two. */
#ifndef CONTROL_H
#define CONTROL_H

#include <stdint.h>

enum {
    DG_VERSION = 2,
    DG_PAGE = 4096,
    DG_OPERATIONS = 512,
    DG_FRAMES = 64,
    DG_OUTPUT = 256 * 1024,
    DG_ARGUMENT_PAGES = 64,   /* at the start of the pool: the addresses of the slots, then copies of values */
    DG_POOL_PAGES = 64 + 4096,
    DG_SLOTS = 4096,
    DG_MISSING_SHIFT = 20,    /* a variable without a value has so many bytes of addresses, log2 */
    /* descriptors that the process inherits */
    DG_FD_CONTROL = 3,
    DG_FD_POOL = 4,
    DG_FD_COMMANDS = 5,
    DG_FD_EVENTS = 6,
};

enum dg_event {
    DG_READY = 1, /* the code is loaded */
    DG_DONE,      /* a block has ended */
    DG_WANTED,    /* a page of the program is read that the process does not have */
    DG_PRINTED,   /* the output is full */
    DG_FAILED,    /* a block was abandoned; the process takes more commands */
    DG_ENDED,     /* the process ends */
    DG_CALLED,    /* a function of the program is called */
};

enum dg_failure {
    DG_READ = 1, /* a read of an address without memory */
    DG_STORE,    /* a store to an address that is not the code's own */
    DG_MISSING,  /* the use of a variable without a value */
    DG_CALL,     /* a call of an address that is not the code's own, which the tool has not answered */
    DG_SYSTEM_CALL,
    DG_SIGNAL,
    DG_TIME,     /* it took too long */
    DG_LOAD,     /* the code could not be loaded; the output says why */
};

/* dg_operation maps count pages of the pool, from page on, at addr; or unmaps count pages there if page is DG_UNMAP. */
#define DG_UNMAP 0xffffffffu
struct dg_operation {
    uint64_t addr;
    uint32_t page, count;
};

/* dg_call has a call of a function of the program: the registers that can have arguments and results by the System V ABI. */
struct dg_call {
    /* set by the process */
    uint64_t function, stack; /* stack is where the arguments on the stack are */
    uint64_t integer[6], vector[8][2];
    /* set by the tool; answered is 0 if the function has not returned */
    uint64_t answered, rax, rdx, result[2][2];
    uint8_t x87[160]; /* the start of the FXSAVE area */
};

struct dg_control {
    uint32_t version;
    /* set by the tool */
    uint32_t block, slots, operations;
    struct dg_operation operation[DG_OPERATIONS];
    /* set by the process */
    uint32_t event, failure;
    uint64_t address; /* that was used; the number of a system call or signal */
    uint64_t base;    /* of the object with the blocks */
    uint64_t arguments, missing; /* where they are in the process */
    struct dg_call call;
    uint32_t frames, output;
    uint64_t frame[DG_FRAMES]; /* return addresses, innermost first */
    char text[DG_OUTPUT];
};

#endif
