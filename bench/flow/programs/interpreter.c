// A machine of a few instructions is interpreted: indirect jumps.
#include <stdio.h>
#include <stdlib.h>

enum { PUSH, ADD, MUL, LESS, JUMP, LOAD, STORE, END };

static const int code[] = {
	LOAD, 0, PUSH, 3, MUL, PUSH, 7, ADD, STORE, 0, // a = a * 3 + 7
	LOAD, 1, PUSH, 1, ADD, STORE, 1,               // i++
	LOAD, 1, LOAD, 2, LESS, JUMP, 0, END,          // until i == n
};

int main(int argc, char **argv)
{
	unsigned stack[16], variable[3] = { 1, 0, atol(argv[argc - 1]) * 100 };
	int pc = 0, top = 0;

	for (;;) {
		switch (code[pc++]) {
		case PUSH: stack[top++] = code[pc++]; break;
		case ADD: top--; stack[top - 1] += stack[top]; break;
		case MUL: top--; stack[top - 1] *= stack[top]; break;
		case LESS: top--; stack[top - 1] = stack[top - 1] < stack[top]; break;
		case JUMP: pc = stack[--top] ? code[pc] : pc + 1; break;
		case LOAD: stack[top++] = variable[code[pc++]]; break;
		case STORE: variable[code[pc++]] = stack[--top]; break;
		case END: printf("%u\n", variable[0]); return 0;
		}
	}
}
