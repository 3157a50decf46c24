/* The size of a grid is computed in 32 bits and kept in 16: the grid is too small. */
// FLAGS: -O0
// ENDS: SIGSEGV
// WAY: outside in fill, of a size that lost bits in reserve
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct grid { unsigned rows, columns; uint8_t *cells; };

static uint8_t *reserve(uint16_t rows, uint16_t columns)
{
	uint16_t size = rows * columns;
	return malloc(size + 16);
}

static void fill(struct grid *g)
{
	for (unsigned at = 0; at < g->rows * g->columns; at += 1 << 16)
		g->cells[at] = (uint8_t)at;
}

int main(int argc, char **argv)
{
	struct grid g = { 60000, argc > 1 ? 1 : 30000, NULL };
	(void)argv;
	g.cells = reserve((uint16_t)g.rows, (uint16_t)g.columns);
	fill(&g);
	printf("%d\n", g.cells[0]);
	free(g.cells);
	return 0;
}
