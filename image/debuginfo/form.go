package debuginfo

// form is a DW_FORM code (DWARF 5 section 7.5.6, and GNU's extensions).
type form uint16

const (
	formAddr          form = 0x01
	formBlock2        form = 0x03
	formBlock4        form = 0x04
	formData2         form = 0x05
	formData4         form = 0x06
	formData8         form = 0x07
	formString        form = 0x08
	formBlock         form = 0x09
	formBlock1        form = 0x0a
	formData1         form = 0x0b
	formFlag          form = 0x0c
	formSdata         form = 0x0d
	formStrp          form = 0x0e
	formUdata         form = 0x0f
	formRefAddr       form = 0x10
	formRef1          form = 0x11
	formRef2          form = 0x12
	formRef4          form = 0x13
	formRef8          form = 0x14
	formRefUdata      form = 0x15
	formIndirect      form = 0x16
	formSecOffset     form = 0x17
	formExprloc       form = 0x18
	formFlagPresent   form = 0x19
	formStrx          form = 0x1a
	formAddrx         form = 0x1b
	formRefSup4       form = 0x1c
	formStrpSup       form = 0x1d
	formData16        form = 0x1e
	formLineStrp      form = 0x1f
	formRefSig8       form = 0x20
	formImplicitConst form = 0x21
	formLoclistx      form = 0x22
	formRnglistx      form = 0x23
	formRefSup8       form = 0x24
	formStrx1         form = 0x25
	formStrx2         form = 0x26
	formStrx3         form = 0x27
	formStrx4         form = 0x28
	formAddrx1        form = 0x29
	formAddrx2        form = 0x2a
	formAddrx3        form = 0x2b
	formAddrx4        form = 0x2c
	formGNUAddrIndex  form = 0x1f01
	formGNUStrIndex   form = 0x1f02
	formGNURefAlt     form = 0x1f20
	formGNUStrpAlt    form = 0x1f21
)

// formSize returns a form's size in bytes if it is the same for all values
// in a unit of this format and version; -1 if it is not.
func formSize(f form, wide bool, version uint16) int {
	offset := 4
	if wide {
		offset = 8
	}
	switch f {
	case formFlagPresent, formImplicitConst:
		return 0
	case formData1, formFlag, formRef1, formStrx1, formAddrx1:
		return 1
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2
	case formStrx3, formAddrx3:
		return 3
	case formData4, formRef4, formRefSup4, formStrx4, formAddrx4:
		return 4
	case formAddr, formData8, formRef8, formRefSig8, formRefSup8:
		return 8
	case formData16:
		return 16
	case formStrp, formSecOffset, formLineStrp, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return offset
	case formRefAddr:
		if version <= 2 { // an address, not an offset (DWARF 2 section 7.5.4)
			return 8
		}
		return offset
	}
	return -1
}

// skipForm skips a value whose size formSize does not know.
func skipForm(r *reader, f form, wide bool, version uint16) {
	switch f {
	case formSdata, formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx,
		formGNUAddrIndex, formGNUStrIndex:
		r.skipLEB()
	case formString:
		r.cstring()
	case formBlock1:
		r.skip(uint64(r.u8()))
	case formBlock2:
		r.skip(uint64(r.u16()))
	case formBlock4:
		r.skip(uint64(r.u32()))
	case formBlock, formExprloc:
		r.skip(r.uleb())
	case formIndirect:
		inner := form(r.uleb())
		if inner == formIndirect || inner == formImplicitConst {
			r.fail()
			return
		}
		if n := formSize(inner, wide, version); n >= 0 {
			r.skip(uint64(n))
			return
		}
		skipForm(r, inner, wide, version)
	default:
		r.fail()
	}
}

// value is an attribute's value, not yet resolved. number holds constants,
// offsets and indexes; block the bytes of blocks, expressions and strings.
// unit is the one that its offsets and indexes are relative to.
type value struct {
	unit   *unit
	form   form
	number uint64
	block  []byte
}

func readForm(r *reader, u *unit, f form, implicit int64) value {
	v := value{unit: u, form: f}
	if f == formImplicitConst {
		v.number = uint64(implicit)
		return v
	}
	if f == formFlagPresent {
		v.number = 1
		return v
	}
	if n := formSize(f, u.wide, u.version); n >= 0 {
		if n == 16 {
			v.block = r.bytes(16)
		} else {
			v.number = r.uint(n)
		}
		return v
	}
	switch f {
	case formSdata:
		v.number = uint64(r.sleb())
	case formString:
		v.block = r.cstring()
	case formBlock1:
		v.block = r.bytes(uint64(r.u8()))
	case formBlock2:
		v.block = r.bytes(uint64(r.u16()))
	case formBlock4:
		v.block = r.bytes(uint64(r.u32()))
	case formBlock, formExprloc:
		v.block = r.bytes(r.uleb())
	case formIndirect:
		inner := form(r.uleb())
		if inner == formIndirect || inner == formImplicitConst {
			r.fail()
			return v
		}
		return readForm(r, u, inner, 0)
	case formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		v.number = r.uleb()
	default:
		r.fail()
	}
	return v
}
