/* text.c - the text form as a whole: its grammar, and printing and parsing of a program.
 *
 * A text is a sequence of statements; line ends mean nothing, # starts a comment.  Names are plain
 * ([A-Za-z_][A-Za-z0-9_.]*, no word of this grammar) or "quoted" with \" \\ \n \t \xHH.
 *
 *   text       blockbuster 1  [program NAME]  [stage array|block|partition|fused]  [serial INT]
 *              statement...                        INT: the next node's creation number (not in arrays)
 *   statement  symbol NAME [at most extent], ...    run-time extents; `dim NAME, ...` says the same.  at most: a misc node of
 *                                                   the program tells it in a run
 *            | dim NAME = extent [blocked|enumerated]
 *            | monoid | tensor | array | root level | candidate | step
 *   extent     INT | NAME | extent*extent           NAME: a symbol
 *   shape      dtype[extent, ...]
 *
 * Array programs (stage array, the default).  A result's type may be left out but for reshape,
 * broadcast and misc; where it stands it is checked.  After axis factoring a type ends with the dims
 * of each axis.
 *   array      input DEF : atype | constant DEF : atype = data
 *            | DEF, ... = op [: atype]... [@ NAME]  @ names the model's node, if not as its result
 *            | output NAME [= op ... | = VAL]
 *   atype      shape [dims [1 | dim*dim, ...]]
 *   DEF        NAME | %INT [as NAME]
 *   VAL        NAME | %INT | none
 *   op         elementwise [of (VAL, ...)] expr     operands: as listed ($0, $1), or in the order
 *                                                   in which expr names them
 *            | contract(VAL[l, ...], VAL[l, ...] -> [l, ...])
 *            | reduce MONOID(VAL, ..., axis=INT | axes=[INT, ...] [, keep])   an operand and a result
 *                                                   for each component of MONOID
 *            | argreduce MONOID(VAL, axis=INT [, keep])       axes count from the last if negative
 *            | scan MONOID(VAL, ..., axis=INT [, exclusive] [, reverse])
 *            | reshape(VAL) | broadcast(VAL) | transpose(VAL, perm=[INT, ...])
 *            | slice(VAL, axis=INT, start=INT, by=INT, length=INT) | concat(VAL, ..., axis=INT)
 *            | misc(VAL, ...)
 *   misc       misc [NAME:]NAME INT(VAL, ...) [{NAME=attribute, ...}]
 *                [of (port, ...) -> (port, ...)]
 *   attribute  INT | FLOAT | "text" | [INT, ...] | [FLOAT, ...] | float[]
 *   port       absent | shape [dims [dim, ...]]; an operand may lack some of these dims, and is the same along them
 *   data       [number, ...] | file("name", offset, length)
 *   number     a number, nan, inf, or bits as 0x7fc1
 *
 * Block programs.  A value is %NAME; %17 is port 0 of the node with serial 17 and %17.1 its port 1.
 *   monoid     a tuple, in the header: text_monoid.c; MONOID below is its name or a basic one's
 *   tensor     input|output|constant|local NAME [once] : shape [dims [dim, ...]] [= data]
 *   root       root { node... }
 *   node       V = input access : type | output access = V
 *            | V, ... = OP [MONOID](V, ...) [: type, ...]   OP: of op.def; MONOID: of row_fold and such
 *            | V = OP(V, V) [past expr] [: type]        OP scales; by what came out of sums over so many terms
 *            | V = dot [dtype](V, V) [: type]           dtype: what is summed and given, where operands are narrower
 *            | V = elementwise [of (V, ...)] expr [: type]
 *            | V, ... = reduce|scan|scan_exclusive MONOID(V[level], ...) [: type, ...]
 *            | V, ... = map dim [first|rest|chunk [dim, ...]] [block INT] (V [: type] = V | V[level], ...)
 *                { node... yield out, ... }
 *            | V = view [of (V, ...)] access : type
 *            | V, ... = misc : type, ...
 *              a map without results may be called by a number all the same: %17 = map ...
 *              each ends with [@ NAME], where the node came from
 *   out        V [by row|col|none] [: type]          collected; `by` where the axis is not the usual
 *            | fold MONOID [component] V [: type]
 *            | invariant V [: type]
 *   type       [dim[:row|col|none]]... dtype[(dim|_, dim|_)]
 *                lists, then the item's row and col; a list chunks the first axis of its dim that no
 *                list further out does, unless it says otherwise
 *   access     [TENSOR of] piece | [TENSOR of] join dim (piece at INT to INT, ...) | TENSOR of none
 *   piece      TENSOR[index, ...] [else NUMBER]      TENSOR: NAME | &INT; in a view V | &operand.  else: what stands outside
 *   index      dim | INT | INT+[INT*]dim | INT-[INT*]dim
 *   candidate  candidate NAME [once] [chosen INT] { [graph {node...}] [exps TEXT] snapshot... }
 *   snapshot   snapshot INT [operations NUMBER] [buffered NUMBER] {node...} [safe {node...}]
 *   step       step (run INT(access, ...) | misc) to (TENSOR, ...) [@ NAME]
 *
 * Expressions: expr_text.c.
 */
#include "text_form.h"

#include <string.h>

static const char *const stage_names[] = {[BB_STAGE_ARRAY] = "array",
                                          [BB_STAGE_BLOCK] = "block",
                                          [BB_STAGE_PARTITION] = "partition",
                                          [BB_STAGE_FUSED] = "fused"};

/* --- printing --- */

static void write_symbols(bb_writer *w) {
  const bb_program *program = w->program;
  for (uint32_t i = 0; i < program->symbols; i++) {
    bb_put(w->out, i ? ", " : "symbol ");
    bb_put_name(w->out, program->symbol[i]);
    if (!program->most[i]) continue;
    bb_put(w->out, " at most ");
    bb_write_extent(w, program->most[i]);
  }
  if (program->symbols) bb_put(w->out, "\n");
}

static void write_dims(bb_writer *w) {
  for (bb_dim i = 0; i < w->program->dims; i++) {
    const bb_dim_info *dim = &w->program->dim[i];
    bb_put(w->out, "dim ");
    bb_put_name(w->out, dim->name);
    bb_put(w->out, " = ");
    bb_write_extent(w, dim->extent);
    bb_put(w->out, dim->blocked ? "\n" : " enumerated\n");
  }
}

static void write_tensor(bb_writer *w, const bb_tensor *tensor) {
  static const char *const role[] = {[BB_TENSOR_INPUT] = "input",
                                     [BB_TENSOR_OUTPUT] = "output",
                                     [BB_TENSOR_CONSTANT] = "constant",
                                     [BB_TENSOR_LOCAL] = "local"};
  bb_put(w->out, "%s ", role[tensor->role]);
  bb_put_name(w->out, tensor->name);
  bb_put(w->out, tensor->once ? " once : " : " : ");
  bb_write_shape(w, tensor->dtype, tensor->rank, tensor->shape);
  for (uint32_t i = 0; i < tensor->axes; i++) {
    bb_put(w->out, i ? "," : " dims [");
    bb_put_name(w->out, w->program->dim[tensor->axis[i]].name);
  }
  if (tensor->axes) bb_put(w->out, "]");
  if (tensor->data) {
    bb_put(w->out, " = ");
    bb_write_data(w, tensor->dtype, tensor->data, tensor->bytes);
  }
  bb_put(w->out, "\n");
}

static void print(bb_buffer *out, const bb_program *program, const char *data_name, bool proofs) {
  bb_writer w = bb_writer_begin(out, program, data_name);
  w.proofs = proofs;
  bb_put(out, "blockbuster 1\n");
  if (*program->name) {
    bb_put(out, "program ");
    bb_put_name(out, program->name);
    bb_put(out, "\n");
  }
  bb_put(out, "stage %s\n", stage_names[program->stage]);
  if (program->stage != BB_STAGE_ARRAY) bb_put(out, "serial %u\n", program->serial);
  write_symbols(&w);
  write_dims(&w);
  bb_write_monoids(&w);
  if (program->stage == BB_STAGE_ARRAY) {
    bb_write_array(&w);
  } else {
    for (uint32_t i = 0; i < program->tensors; i++) write_tensor(&w, &program->tensor[i]);
    if (program->stage == BB_STAGE_BLOCK && program->root) {
      bb_put(out, "root ");
      bb_write_graph(&w, program->root, 0);
    }
    if (program->stage >= BB_STAGE_PARTITION) bb_write_stages(&w);
  }
  bb_writer_end(&w);
}

void bb_text_print(bb_buffer *out, const bb_program *program, const char *data_name) {
  print(out, program, data_name, true);
}

void bb_text_print_without_proofs(bb_buffer *out, const bb_program *program,
                                  const char *data_name) {
  print(out, program, data_name, false);
}

/* --- the data file --- */

static void give_data(const void *data, size_t bytes, bb_text_sink *sink, void *user) {
  static const char zeros[BB_DATA_ALIGN];
  if (!data || !bb_data_is_large(bytes)) return;
  sink(user, data, bytes);
  if (bytes % BB_DATA_ALIGN) sink(user, zeros, BB_DATA_ALIGN - bytes % BB_DATA_ALIGN);
}

void bb_text_data(const bb_program *program, bb_text_sink *sink, void *user) {
  if (program->stage == BB_STAGE_ARRAY) {
    bb_arena *scratch = bb_scratch(program->ctx);
    const bool *used = bb_array_used(program->array, scratch);
    for (uint32_t i = 0; program->array && i < program->array->values; i++) {
      const bb_array_value *v = &program->array->value[i];
      if (used[i] && v->producer == BB_NONE && !v->is_input)
        give_data(v->data, v->bytes, sink, user);
    }
    bb_scratch_end(scratch);
  } else {
    for (uint32_t i = 0; i < program->tensors; i++)
      give_data(program->tensor[i].data, program->tensor[i].bytes, sink, user);
  }
}

/* --- parsing --- */

static void read_stage(bb_reader *r) {
  for (uint32_t i = 0; i < sizeof stage_names / sizeof *stage_names; i++) {
    if (!bb_read_accept(r, stage_names[i])) continue;
    r->program->stage = (bb_stage)i;
    return;
  }
  bb_read_fail_expected(r, "array, block, partition or fused");
}

static void read_header(bb_reader *r) {
  bb_read_expect(r, "blockbuster");
  const char *place = r->token.start;
  if (bb_read_integer(r) != 1) bb_read_fail(r, place, "this version reads texts of version 1 only");
  if (bb_read_accept(r, "program")) {
    const char *name = bb_read_name(r, "the program's name");
    r->program->name = bb_arena_text(r->program->arena, name, strlen(name));
  }
  if (bb_read_accept(r, "stage")) read_stage(r);
  if (r->program->stage != BB_STAGE_ARRAY && bb_read_accept(r, "serial")) bb_read_serial(r);
}

static void read_statement(bb_reader *r, bb_array_reader *array) {
  bb_stage stage = r->program->stage;
  if (bb_read_accept(r, "symbol"))
    bb_read_symbols(r);
  else if (bb_read_accept(r, "dim"))
    bb_read_dims(r);
  else if (bb_read_accept(r, "monoid"))
    bb_read_monoid_statement(r);
  else if (stage == BB_STAGE_ARRAY)
    bb_array_read_statement(array);
  else if (stage == BB_STAGE_BLOCK && bb_read_is(r, "root"))
    bb_read_root(r);
  else if (stage >= BB_STAGE_PARTITION && bb_read_accept(r, "candidate"))
    bb_read_candidate(r);
  else if (stage >= BB_STAGE_PARTITION && bb_read_accept(r, "step"))
    bb_read_step(r);
  else
    bb_read_tensor_statement(r);
}

bb_program *bb_text_parse(bb_context *ctx, const char *path, const char *text, size_t length) {
  bb_program *program = bb_program_create(ctx, "");
  bb_program_defer(program);
  bb_reader r = {.ctx = ctx, .program = program, .path = path, .text = text, .end = text + length};
  r.scratch = bb_scratch(ctx);
  r.monoid = bb_table_create(r.scratch);
  r.tensor = bb_table_create(r.scratch);
  bb_read_from(&r, text);
  read_header(&r);
  bb_array_reader *array = program->stage == BB_STAGE_ARRAY ? bb_array_reader_begin(&r) : NULL;
  while (r.token.kind != BB_TOKEN_END) read_statement(&r, array);
  if (program->stage == BB_STAGE_BLOCK && !program->root)
    bb_read_fail(&r, r.token.start, "a block program without its root");
  bb_read_settle_serials(&r);
  bb_scratch_end(r.scratch);
  bb_undefer(ctx, program);
  return program;
}
