/* The objects' call frame information (.eh_frame, in the form of the Linux
 * Standard Base and DWARF 5, section 6.4): the rule by which the caller of a pc
 * is found. Only what compilers emit at calls is understood.
 */
#include "agent.h"

/* Where the frame above begins (the CFA), from the registers at a pc. */
enum dg_cfa {
	DG_CFA_UNKNOWN = 0,
	DG_CFA_RSP = 1,     /* rsp + offset */
	DG_CFA_RBP = 2,     /* rbp + offset */
	DG_CFA_RBP_REF = 3, /* the word at rbp + offset: gcc, where it realigned the stack */
	DG_CFA_SIGNAL = 4,  /* the kernel's signal frame at rsp */
	DG_CFA_END = 5,     /* the outermost frame: its return address is undefined */
};

/* How to get the caller's rbp. */
enum dg_rbp {
	DG_RBP_SAME = 0,
	DG_RBP_AT_CFA = 1, /* the word at CFA + offset */
	DG_RBP_AT_RBP = 2, /* the word at rbp + offset */
	DG_RBP_LOST = 3,
};

struct dg_rule {
	uint8_t cfa, rbp;
	int16_t rbp_offset;
	int32_t cfa_offset;
};

/* A bounded reader of call frame information. */
struct dg_reader {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t dg_read_fixed(struct dg_reader *r, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->at) < bytes) {
		r->bad = true;
		r->at = r->end;
		return 0;
	}
	__builtin_memcpy(&value, r->at, bytes);
	r->at += bytes;
	return value;
}

static uint8_t dg_read_byte(struct dg_reader *r)
{
	if (r->at == r->end) {
		r->bad = true;
		return 0;
	}
	return *r->at++;
}

static uint64_t dg_read_leb(struct dg_reader *r, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = dg_read_byte(r);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= ~0ull << shift;
	return value;
}

static uint64_t dg_read_uleb(struct dg_reader *r)
{
	return dg_read_leb(r, false);
}

static int64_t dg_read_sleb(struct dg_reader *r)
{
	return (int64_t)dg_read_leb(r, true);
}

/* DW_EH_PE_*: the low half is the format, the high half what it is relative to. */
static uint64_t dg_read_encoded(struct dg_reader *r, uint8_t encoding, uint64_t data)
{
	uint64_t place = (uint64_t)r->at, value;

	switch (encoding & 0x0f) {
	case 0x00: case 0x04: case 0x0c: value = dg_read_fixed(r, 8); break;
	case 0x03: value = dg_read_fixed(r, 4); break;
	case 0x0b: value = (uint64_t)(int32_t)dg_read_fixed(r, 4); break;
	case 0x02: value = dg_read_fixed(r, 2); break;
	case 0x0a: value = (uint64_t)(int16_t)dg_read_fixed(r, 2); break;
	case 0x01: value = dg_read_uleb(r); break;
	case 0x09: value = (uint64_t)dg_read_sleb(r); break;
	default: r->bad = true; return 0;
	}
	switch (encoding & 0x70) {
	case 0x00: return value;
	case 0x10: return value + place;
	case 0x30: return value + data;
	default: r->bad = true; return 0;
	}
}

/* A row of the call frame table, as far as it concerns us. */
enum dg_saved { DG_SAVED_NOT = 0, DG_SAVED_AT_CFA, DG_SAVED_AT_RBP, DG_SAVED_LOST };

struct dg_row {
	uint8_t cfa;       /* enum dg_cfa */
	uint8_t saved_rbp; /* enum dg_saved */
	uint8_t saved_pc;
	int64_t cfa_offset, rbp_offset, pc_offset;
};

#define DG_ROWS 8 /* depth of remember_state; compilers use one */

struct dg_cie {
	struct dg_reader program;
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of the FDE's addresses */
	bool signal, has_augmentation;
};

struct dg_program {
	const struct dg_cie *cie;
	uint64_t location, target;
	struct dg_row row, initial, kept[DG_ROWS];
	unsigned depth;
	bool bad;
};

enum { DG_REG_RBP = 6, DG_REG_RSP = 7, DG_REG_PC = 16 };

static void dg_save(struct dg_program *p, uint64_t reg, uint8_t saved, int64_t offset)
{
	if (reg == DG_REG_RBP) {
		p->row.saved_rbp = saved;
		p->row.rbp_offset = offset;
	} else if (reg == DG_REG_PC) {
		p->row.saved_pc = saved;
		p->row.pc_offset = offset;
	}
}

static void dg_restore(struct dg_program *p, uint64_t reg)
{
	if (reg == DG_REG_RBP)
		dg_save(p, reg, p->initial.saved_rbp, p->initial.rbp_offset);
	else if (reg == DG_REG_PC)
		dg_save(p, reg, p->initial.saved_pc, p->initial.pc_offset);
}

static void dg_set_cfa(struct dg_program *p, uint64_t reg, int64_t offset)
{
	p->row.cfa = reg == DG_REG_RSP ? DG_CFA_RSP : reg == DG_REG_RBP ? DG_CFA_RBP : DG_CFA_UNKNOWN;
	p->row.cfa_offset = offset;
}

/* DW_OP_breg6 n, alone or followed by DW_OP_deref: what gcc emits for frames
 * that it realigned. *deref tells which; false for any other expression, among
 * them the PLT's, which is at no return address. */
static bool dg_rbp_expression(struct dg_reader *r, int64_t *offset, bool *deref)
{
	uint64_t length = dg_read_uleb(r);
	struct dg_reader e = { r->at, r->at + length, false };

	if (length > (uint64_t)(r->end - r->at)) {
		r->bad = true;
		return false;
	}
	r->at = e.end;
	if (dg_read_byte(&e) != 0x70 + DG_REG_RBP)
		return false;
	*offset = dg_read_sleb(&e);
	*deref = e.at != e.end;
	return !e.bad && (!*deref || (dg_read_byte(&e) == 0x06 && e.at == e.end));
}

static void dg_run_expression(struct dg_program *p, struct dg_reader *r, uint8_t op)
{
	uint64_t reg = op == 0x0f ? 0 : dg_read_uleb(r);
	int64_t offset = 0;
	bool deref = false, ours = dg_rbp_expression(r, &offset, &deref);

	if (op == 0x0f) {
		p->row.cfa = ours && deref ? DG_CFA_RBP_REF : ours ? DG_CFA_RBP : DG_CFA_UNKNOWN;
		p->row.cfa_offset = offset;
		return;
	}
	/* An expression (0x10) gives the address of the saved value; a value
	 * expression (0x16) is not used for these registers. */
	dg_save(p, reg, ours && !deref && op == 0x10 ? DG_SAVED_AT_RBP : DG_SAVED_LOST, offset);
}

/* The instructions with their operand in further bytes. */
static void dg_run_extended(struct dg_program *p, struct dg_reader *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case 0x00: break; /* nop */
	case 0x01: p->location = dg_read_encoded(r, p->cie->encoding, 0); break; /* set_loc */
	case 0x02: p->location += dg_read_fixed(r, 1) * p->cie->code_align; break; /* advance_loc1 */
	case 0x03: p->location += dg_read_fixed(r, 2) * p->cie->code_align; break;
	case 0x04: p->location += dg_read_fixed(r, 4) * p->cie->code_align; break;
	case 0x05: /* offset_extended */
		reg = dg_read_uleb(r);
		dg_save(p, reg, DG_SAVED_AT_CFA, (int64_t)dg_read_uleb(r) * p->cie->data_align);
		break;
	case 0x06: dg_restore(p, dg_read_uleb(r)); break;                 /* restore_extended */
	case 0x07: dg_save(p, dg_read_uleb(r), DG_SAVED_LOST, 0); break;  /* undefined */
	case 0x08: dg_save(p, dg_read_uleb(r), DG_SAVED_NOT, 0); break;   /* same_value */
	case 0x09: /* register */
		reg = dg_read_uleb(r);
		dg_read_uleb(r);
		dg_save(p, reg, DG_SAVED_LOST, 0);
		break;
	case 0x0a: /* remember_state */
		if (p->depth == DG_ROWS)
			p->bad = true;
		else
			p->kept[p->depth++] = p->row;
		break;
	case 0x0b: /* restore_state */
		if (!p->depth)
			p->bad = true;
		else
			p->row = p->kept[--p->depth];
		break;
	case 0x0c: /* def_cfa */
		reg = dg_read_uleb(r);
		dg_set_cfa(p, reg, (int64_t)dg_read_uleb(r));
		break;
	case 0x0d: dg_set_cfa(p, dg_read_uleb(r), p->row.cfa_offset); break; /* def_cfa_register */
	case 0x0e: p->row.cfa_offset = (int64_t)dg_read_uleb(r); break;      /* def_cfa_offset */
	case 0x0f: case 0x10: case 0x16: dg_run_expression(p, r, op); break;
	case 0x11: /* offset_extended_sf */
		reg = dg_read_uleb(r);
		dg_save(p, reg, DG_SAVED_AT_CFA, dg_read_sleb(r) * p->cie->data_align);
		break;
	case 0x12: /* def_cfa_sf */
		reg = dg_read_uleb(r);
		dg_set_cfa(p, reg, dg_read_sleb(r) * p->cie->data_align);
		break;
	case 0x13: p->row.cfa_offset = dg_read_sleb(r) * p->cie->data_align; break; /* def_cfa_offset_sf */
	case 0x2e: dg_read_uleb(r); break; /* GNU_args_size */
	default: p->bad = true; break;
	}
}

static void dg_run(struct dg_program *p, struct dg_reader r)
{
	while (r.at < r.end && !r.bad && !p->bad) {
		uint8_t op = dg_read_byte(&r);
		uint8_t low = op & 0x3f;

		switch (op >> 6) {
		case 1: p->location += low * p->cie->code_align; break; /* advance_loc */
		case 2: dg_save(p, low, DG_SAVED_AT_CFA, (int64_t)dg_read_uleb(&r) * p->cie->data_align); break;
		case 3: dg_restore(p, low); break;
		default: dg_run_extended(p, &r, low); break;
		}
		if (p->location > p->target)
			return;
	}
	p->bad |= r.bad;
}

/* The length field of an entry, and what it encloses. */
static struct dg_reader dg_entry_at(const uint8_t *at)
{
	uint32_t length;
	struct dg_reader r = { at + 4, at + 4, true };

	__builtin_memcpy(&length, at, 4);
	/* 0 ends the section; the 64-bit form is not emitted for objects. */
	if (length && length != 0xffffffff)
		r = (struct dg_reader){ at + 4, at + 4 + length, false };
	return r;
}

static bool dg_read_cie(const uint8_t *at, struct dg_cie *cie)
{
	struct dg_reader r = dg_entry_at(at);
	const char *augmentation;
	uint8_t version;

	*cie = (struct dg_cie){ .encoding = 0 };
	if (dg_read_fixed(&r, 4) != 0)
		return false;
	version = dg_read_byte(&r);
	if (version != 1 && version != 3)
		return false;
	augmentation = (const char *)r.at;
	while (dg_read_byte(&r))
		;
	cie->code_align = dg_read_uleb(&r);
	cie->data_align = dg_read_sleb(&r);
	if ((version == 1 ? dg_read_byte(&r) : dg_read_uleb(&r)) != DG_REG_PC)
		return false;
	if (*augmentation == 'z') {
		cie->has_augmentation = true;
		dg_read_uleb(&r);
		augmentation++;
	}
	for (; *augmentation && !r.bad; augmentation++)
		switch (*augmentation) {
		case 'R': cie->encoding = dg_read_byte(&r); break;
		case 'L': dg_read_byte(&r); break;
		case 'S': cie->signal = true; break;
		case 'P': {
			uint8_t encoding = dg_read_byte(&r);

			dg_read_encoded(&r, encoding & 0x7f, 0);
			break;
		}
		default: return false;
		}
	cie->program = r;
	return !r.bad;
}

static struct dg_rule dg_rule_of(const struct dg_program *p)
{
	const struct dg_row *row = &p->row;
	struct dg_rule rule = { .cfa = DG_CFA_UNKNOWN };

	if (p->cie->signal)
		return (struct dg_rule){ .cfa = DG_CFA_SIGNAL };
	if (row->saved_pc == DG_SAVED_LOST)
		return (struct dg_rule){ .cfa = DG_CFA_END };
	if (p->bad || row->saved_pc != DG_SAVED_AT_CFA || row->pc_offset != -8 ||
	    row->cfa_offset != (int32_t)row->cfa_offset || row->rbp_offset != (int16_t)row->rbp_offset)
		return rule;
	rule.cfa = row->cfa;
	rule.cfa_offset = (int32_t)row->cfa_offset;
	rule.rbp_offset = (int16_t)row->rbp_offset;
	rule.rbp = row->saved_rbp == DG_SAVED_NOT ? DG_RBP_SAME
		 : row->saved_rbp == DG_SAVED_AT_CFA ? DG_RBP_AT_CFA
		 : row->saved_rbp == DG_SAVED_AT_RBP ? DG_RBP_AT_RBP : DG_RBP_LOST;
	return rule;
}

static struct dg_rule dg_rule_by_fde(const uint8_t *fde, uint64_t pc)
{
	struct dg_reader r = dg_entry_at(fde);
	struct dg_rule none = { .cfa = DG_CFA_UNKNOWN };
	struct dg_program p = { .target = pc };
	struct dg_cie cie;
	const uint8_t *base = r.at;
	uint64_t distance, start, length;

	distance = dg_read_fixed(&r, 4);
	if (r.bad || !distance || !dg_read_cie(base - distance, &cie))
		return none;
	start = dg_read_encoded(&r, cie.encoding, 0);
	length = dg_read_encoded(&r, cie.encoding & 0x0f, 0);
	if (r.bad || pc < start || pc - start >= length)
		return none;
	if (cie.has_augmentation) {
		uint64_t skip = dg_read_uleb(&r);

		if (skip > (uint64_t)(r.end - r.at))
			return none;
		r.at += skip;
	}
	p.cie = &cie;
	/* The CIE's instructions are in force from the beginning. */
	p.location = start;
	dg_run(&p, cie.program);
	p.initial = p.row;
	p.location = start;
	dg_run(&p, r);
	return dg_rule_of(&p);
}

/* .eh_frame_hdr: a table sorted by address, as all linkers make it. Returns
 * the FDE that begins last at or before pc, or NULL. */
static const uint8_t *dg_search(const uint8_t *header, uint64_t pc)
{
	struct dg_reader r = { header + 4, header + 4 + 2 * 9, false };
	uint64_t count, low = 0;
	const int32_t *table;
	int64_t wanted = (int64_t)(pc - (uint64_t)header);

	/* version 1; the table's encoding: 4 bytes, signed, relative to the header */
	if (header[0] != 1 || header[2] == 0xff || header[3] != 0x3b)
		return NULL;
	dg_read_encoded(&r, header[1], (uint64_t)header);
	count = dg_read_encoded(&r, header[2], (uint64_t)header);
	if (r.bad || !count)
		return NULL;
	table = (const int32_t *)r.at;
	if (wanted < table[0])
		return NULL;
	for (uint64_t high = count; high - low > 1;) {
		uint64_t middle = low + (high - low) / 2;

		if (table[middle * 2] <= wanted)
			low = middle;
		else
			high = middle;
	}
	return header + table[low * 2 + 1];
}
