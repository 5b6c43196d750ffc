#include "tests/emit/samples.h"

#include <fmt/format.h>

#include <regex>

#include "backend/ir/builder.h"
#include "backend/ir/text.h"
#include "tests/emit/emit_fixture.h"

namespace kiln::test {
namespace {

using ir::Builder;
using ir::Op;
using ir::Shape;
using ir::Type;
using ir::Value;

/// A kernel under construction; parameters first.
class Maker {
 public:
  explicit Maker(const std::string& name) : f_(name, SourceLoc{"samples.cpp", 1}), b_(f_) {}

  Value pointer(DType d, bool read_only, int align) {
    f_.params.push_back(
        {Type::pointer(d, read_only), "", read_only ? rt::Access::Read : rt::Access::ReadWrite, align, false});
    return b_.param(int(f_.params.size()) - 1, {});
  }
  Value scalar(DType d, int divisor = 1) {
    f_.params.push_back({Type::scalar(d), "", rt::Access::Read, divisor, false});
    return b_.param(int(f_.params.size()) - 1, {});
  }
  Value index(std::int64_t x) { return b_.constant(ir::Literal::of_int(DType::index, x), {}); }
  Value range(std::int64_t n, std::int64_t start = 0) { return b_.arange(start, start + n, {}); }
  /// Operands of a binary op: scalars become tiles of the other's shape.
  Value op(Op o, Value x, Value y) {
    if (!type(x).tile && type(y).tile) x = b_.splat(x, type(y).shape, {});
    if (!type(y).tile && type(x).tile) y = b_.splat(y, type(x).shape, {});
    return b_.elementwise(o, {x, y}, {});
  }
  Value op(Op o, Value x) { return b_.elementwise(o, {x}, {}); }
  Value column(Value x, std::int64_t width) {
    return b_.broadcast(b_.expand_dims(x, 1, {}), {type(x).shape[0], width}, {});
  }
  Value row(Value x, std::int64_t height) {
    return b_.broadcast(b_.expand_dims(x, 0, {}), {height, type(x).shape[0]}, {});
  }
  Value at(Value ptr, Value i) {
    if (!type(ptr).tile && type(i).tile) ptr = b_.splat(ptr, type(i).shape, {});
    return b_.ptr_add(ptr, i, {});
  }
  Value load(Value ptr, Value mask = {}, Value other = {}) {
    return b_.load(ptr, mask, other, ir::CacheHint::Plain, {});
  }
  void store(Value ptr, Value v, Value mask = {}) { b_.store(ptr, v, mask, ir::CacheHint::Plain, {}); }
  Builder& b() { return b_; }
  const Type& type(Value v) const { return f_.type(v); }

  Sample done(std::vector<std::int64_t> args, std::array<std::int64_t, 3> programs = {1, 1, 1}) {
    return {f_.name, f_, programs, std::move(args)};
  }

 private:
  ir::Function f_;
  Builder b_;
};

constexpr DType kDtypes[] = {DType::i1,  DType::i8,   DType::i16, DType::i32,   DType::i64,    DType::u8,
                             DType::u16, DType::u32,  DType::u64, DType::index, DType::f8e4m3, DType::f8e5m2,
                             DType::f16, DType::bf16, DType::f32, DType::f64};

Sample copy(DType d, bool aligned, bool divisible, std::int64_t n) {
  constexpr std::int64_t kBlock = 1024;
  Maker m(
      fmt::format("copy_{}_{}_{}_{}", name(d), aligned ? "aligned" : "unaligned", divisible ? "divisible" : "any", n));
  const Value in = m.pointer(d, true, aligned ? 16 : bytes(d)), out = m.pointer(d, false, aligned ? 16 : bytes(d));
  const Value count = m.scalar(DType::index, divisible ? 16 : 1);
  const Value i = m.op(Op::Add, m.op(Op::Mul, m.b().program_id(0, {}), m.index(kBlock)), m.range(kBlock));
  const Value mask = m.op(Op::Lt, i, count);
  m.store(m.at(out, i), m.load(m.at(in, i), mask), mask);
  const std::int64_t shift = aligned ? 0 : bytes(d);
  return m.done({4096 + shift, 131072 + shift, n}, {(n + kBlock - 1) / kBlock, 1, 1});
}

/// y[r, c] = x[r, c] + row[c] over an odd box inside a strided matrix, masked at rows and columns.
Sample matrix(DType d, std::int64_t rows, std::int64_t columns, std::int64_t tile_rows, std::int64_t tile_columns,
              bool facts) {
  Maker m(fmt::format("matrix_{}_{}x{}_in_{}x{}{}", name(d), rows, columns, tile_rows, tile_columns,
                      facts ? "_facts" : ""));
  const int align = facts ? 16 : bytes(d), divisor = facts ? 16 : 1;
  const Value x = m.pointer(d, true, align), y = m.pointer(d, false, align), bias = m.pointer(d, true, align);
  const Value height = m.scalar(DType::index), width = m.scalar(DType::index, divisor),
              stride = m.scalar(DType::index, divisor);
  const Value r = m.op(Op::Add, m.op(Op::Mul, m.b().program_id(1, {}), m.index(tile_rows)), m.range(tile_rows));
  const Value c = m.op(Op::Add, m.op(Op::Mul, m.b().program_id(0, {}), m.index(tile_columns)), m.range(tile_columns));
  const Value row_mask = m.op(Op::Lt, r, height), column_mask = m.op(Op::Lt, c, width);
  const Value mask = m.op(Op::And, m.column(row_mask, tile_columns), m.row(column_mask, tile_rows));
  const Value i = m.op(Op::Add, m.column(m.op(Op::Mul, r, stride), tile_columns), m.row(c, tile_rows));
  const Value b = m.row(m.load(m.at(bias, c), column_mask), tile_rows);
  m.store(m.at(y, i), m.op(Op::Add, m.load(m.at(x, i), mask), b), mask);
  const std::int64_t pitch = (columns + 31) / 16 * 16 + (facts ? 0 : 1);
  return m.done({4096, 131072, 1024, rows, columns, pitch},
                {(columns + tile_columns - 1) / tile_columns, (rows + tile_rows - 1) / tile_rows, 1});
}

/// out[i] = f(i) as i64, for index expressions.
template <class Fn>
Sample index_map(const std::string& name, std::int64_t n, Fn&& f) {
  Maker m("index_" + name);
  const Value out = m.pointer(DType::i64, false, 16), s = m.scalar(DType::index), t = m.scalar(DType::index, 16);
  const Value i = m.op(Op::Add, m.op(Op::Mul, m.b().program_id(0, {}), m.index(n)), m.range(n));
  m.store(m.at(out, i), m.b().cast(f(m, i, s, t), DType::i64, false, {}));
  return m.done({8192, -7, 48}, {3, 1, 1});
}

/// dst[i] = src[i] within one program, elements apart by `shift` bytes.
Sample shifted(DType d, std::int64_t n, std::int64_t shift) {
  Maker m(fmt::format("shift_{}_{}_by_{}", name(d), n, shift));
  const Value x = m.pointer(d, false, bytes(d)), y = m.pointer(d, false, bytes(d));
  const Value i = m.range(n);
  m.store(m.at(y, i), m.op(Op::Add, m.load(m.at(x, i)), m.load(m.at(y, i))));
  return m.done({8192, 8192 + shift});
}

/// A kernel of tiles of 300 from text.
Sample parsed(const std::string& name, const std::string& params, const std::string& body,
              std::vector<std::int64_t> args) {
  return {name,
          ir::parse("kernel \"" + name + "\" stage=traced\n" + params + "{\n" + body + "}\n", "samples.cpp"),
          {1, 1, 1},
          std::move(args)};
}

/// The same at stage laid.
Sample laid(const std::string& name, const std::string& params, const std::string& body,
            std::vector<std::int64_t> args) {
  const std::string exec =
      "exec team=cta warps=4 programs_per_cta=1 cluster=1 max_registers=0 register_goal=0\n";
  const std::string layout = "layout #0 = [register=(128)(256) lane=(1)(2)(4)(8)(16) warp=(32)(64)] -> 512\n";
  const std::string with_layouts =
      std::regex_replace(body, std::regex("tile<300x(index|i32|i1|ptr<i32>)>"), "tile<300x$1, #0>");
  return {name,
          ir::parse("kernel \"" + name + "\" stage=laid\n" + exec + params + layout + "{\n" + with_layouts + "}\n",
                    "samples.cpp"),
          {1, 1, 1},
          std::move(args)};
}

}  // namespace

std::vector<Sample> copy_samples() {
  std::vector<Sample> all;
  for (DType d : kDtypes)
    for (bool aligned : {true, false})
      for (std::int64_t n : {1023, 1025}) all.push_back(copy(d, aligned, false, n));
  for (std::int64_t n : {1, 31, 33, 4096}) all.push_back(copy(DType::f32, true, false, n));
  for (DType d : {DType::i8, DType::bf16, DType::f32, DType::f64}) all.push_back(copy(d, true, true, 2064));
  return all;
}

std::vector<Sample> shape_samples() {
  std::vector<Sample> all;
  for (DType d : {DType::i8, DType::i16, DType::f32, DType::i64}) {
    all.push_back(matrix(d, 13, 96, 8, 64, true));
    all.push_back(matrix(d, 13, 101, 8, 64, false));
    all.push_back(matrix(d, 7, 100, 12, 100, false));
    all.push_back(matrix(d, 5, 48, 3, 24, true));
  }
  {
    Maker m("scalar_parameters");
    const Value out = m.pointer(DType::i64, false, 16);
    std::vector<std::int64_t> args{8192};
    std::int64_t slot = 0;
    for (DType d : kDtypes) {
      m.store(m.at(out, m.index(slot++)), m.b().cast(m.scalar(d), DType::i64, false, {}));
      args.push_back(d == DType::i1 ? 1 : slot + 1);
    }
    all.push_back(m.done(args));
  }
  const auto two = [](Op o) { return [o](Maker& m, Value i, Value s, Value) { return m.op(o, i, s); }; };
  for (Op o : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::Min, Op::Max, Op::Shl, Op::Shr})
    all.push_back(index_map(ir::mnemonic(o), 300, two(o)));
  for (Op o : {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne}) {
    all.push_back(index_map(fmt::format("{}_limit", ir::mnemonic(o)), 1024, [o](Maker& m, Value i, Value, Value t) {
      return m.op(o, i, m.op(Op::Mul, t, m.index(16)));
    }));
    all.push_back(index_map(fmt::format("{}_odd_limit", ir::mnemonic(o)), 1024, [o](Maker& m, Value i, Value s, Value) {
      return m.op(o, m.op(Op::Mul, i, m.index(3)), m.op(Op::Sub, m.index(1111), s));
    }));
    all.push_back(index_map(fmt::format("limit_{}", ir::mnemonic(o)), 1024,
                            [o](Maker& m, Value i, Value, Value) { return m.op(o, m.index(1024), i); }));
    all.push_back(index_map(fmt::format("{}_reversed", ir::mnemonic(o)), 1024, [o](Maker& m, Value i, Value, Value) {
      return m.op(o, i, m.op(Op::Sub, m.index(2047), i));
    }));
  }
  for (std::int64_t k : {1, 4, 7, 48, 1000}) {
    all.push_back(index_map(fmt::format("div_{}", k), 1024,
                            [k](Maker& m, Value i, Value, Value) { return m.op(Op::Div, i, m.index(k)); }));
    all.push_back(index_map(fmt::format("rem_{}", k), 1024,
                            [k](Maker& m, Value i, Value, Value) { return m.op(Op::Rem, i, m.index(k)); }));
  }
  all.push_back(index_map("huge", 256, [](Maker& m, Value i, Value, Value) {
    return m.op(Op::Mul, m.op(Op::Add, i, m.index(1)), m.index(std::int64_t(1) << 33));
  }));
  all.push_back(index_map("wrapping_limit", 1024, [](Maker& m, Value i, Value, Value) {
    return m.op(Op::Lt, m.op(Op::Add, i, m.index(std::numeric_limits<std::int64_t>::max() - 100)), m.index(5));
  }));
  all.push_back(index_map("through_i32", 1024, [](Maker& m, Value i, Value s, Value) {
    return m.b().cast(m.b().cast(m.op(Op::Mul, i, s), DType::i32, false, {}), DType::index, false, {});
  }));
  all.push_back(index_map("through_u8", 1024, [](Maker& m, Value i, Value, Value) {
    return m.b().cast(m.b().cast(i, DType::u8, false, {}), DType::index, false, {});
  }));
  all.push_back(index_map("select", 1024, [](Maker& m, Value i, Value s, Value t) {
    return m.b().select(m.op(Op::Lt, m.op(Op::Rem, i, m.index(5)), m.index(2)), i,
                        m.op(Op::Add, m.op(Op::Mul, i, s), t), {});
  }));
  all.push_back(index_map("neg_abs", 1024, [](Maker& m, Value i, Value s, Value) {
    return m.op(Op::Abs, m.op(Op::Neg, m.op(Op::Add, i, s)));
  }));
  return all;
}

std::vector<Sample> overlap_samples() {
  std::vector<Sample> all;
  for (std::int64_t shift : {0, 4, -4, 64, -64, 512, 4096}) {
    all.push_back(shifted(DType::i32, 1024, shift));
    all.push_back(shifted(DType::i32, 777, shift));
  }
  for (std::int64_t shift : {0, 1, -3, 130}) all.push_back(shifted(DType::u8, 4096, shift));
  {
    Maker m("reverse_in_place");
    const Value x = m.pointer(DType::i32, false, 16), i = m.range(1024);
    m.store(m.at(x, m.op(Op::Sub, m.index(1023), i)), m.load(m.at(x, i)));
    m.store(m.at(x, i), m.op(Op::Add, m.load(m.at(x, i)), m.b().cast(i, DType::i32, false, {})));
    all.push_back(m.done({8192}));
  }
  {
    Maker m("transpose_in_place");
    const Value x = m.pointer(DType::i32, false, 16);
    const Value r = m.column(m.range(32), 32), c = m.row(m.range(32), 32);
    const Value there = m.op(Op::Add, m.op(Op::Mul, r, m.index(32)), c),
                back = m.op(Op::Add, m.op(Op::Mul, c, m.index(32)), r);
    m.store(m.at(x, back), m.load(m.at(x, there)));
    all.push_back(m.done({8192}));
  }
  {
    Maker m("duplicates_then_write");  // x[i] += x[i / 2]
    const Value x = m.pointer(DType::i32, false, 16), i = m.range(1024);
    m.store(m.at(x, i), m.op(Op::Add, m.load(m.at(x, i)), m.load(m.at(x, m.op(Op::Div, i, m.index(2))))));
    all.push_back(m.done({8192}));
  }
  {
    Maker m("replicated_small_tile");
    const Value x = m.pointer(DType::i32, false, 16), i = m.range(8);
    for (int k = 0; k < 3; ++k)
      m.store(m.at(x, i), m.op(Op::Add, m.load(m.at(x, i)), m.load(m.at(x, m.op(Op::Sub, m.index(7), i)))));
    all.push_back(m.done({8192}));
  }
  {
    Maker m("scalar_counter");
    const Value x = m.pointer(DType::i32, false, 4);
    const Value next = m.at(x, m.index(1));
    for (int k = 0; k < 3; ++k) {
      m.store(next, m.op(Op::Add, m.load(x), m.load(next)));
      m.store(x, m.load(next));
    }
    all.push_back(m.done({8192}));
  }
  return all;
}

std::vector<Sample> control_samples() {
  const std::string arrays =
      "param : ptr<i32> access=readwrite align=16\nparam : ptr<i32> access=readwrite align=16\nparam : index "
      "access=read\n";
  const std::string prologue = R"(
    %0 = param index=0 : ptr<i32>
    %1 = param index=1 : ptr<i32>
    %2 = param index=2 : index
    %3 = arange start=0 end=300 : tile<300xindex>
    %4 = splat %0 : tile<300xptr<i32>>
    %5 = splat %1 : tile<300xptr<i32>>
    %6 = ptr_add %4, %3 : tile<300xptr<i32>>
    %7 = ptr_add %5, %3 : tile<300xptr<i32>>
    %8 = constant value=index(0) : index
    %9 = constant value=index(1) : index
    %10 = constant value=index(300) : index
  )";
  // Sum of n rows of 300; the pointer tile itself is carried.
  const std::string carried_pointer = prologue + R"(
    %11 = load %7 : tile<300xi32>
    %12 = splat %10 : tile<300xindex>
    %13, %14 = for %8, %2, %9, %11, %6 : tile<300xi32>, tile<300xptr<i32>> {(%15 : index, %16 : tile<300xi32>, %17 : tile<300xptr<i32>>)
      %18 = load %17 : tile<300xi32>
      %19 = add %16, %18 : tile<300xi32>
      %20 = ptr_add %17, %12 : tile<300xptr<i32>>
      yield %19, %20
    }
    store %7, %13
  )";
  // Counts down, and each iteration reads what the one before stored at another place.
  const std::string downwards = prologue + R"(
    %11 = constant value=index(-2) : index
    for %2, %8, %11 {(%12 : index)
      %13 = splat %12 : tile<300xindex>
      %14 = ptr_add %6, %13 : tile<300xptr<i32>>
      %15 = load %14 : tile<300xi32>
      %16 = cast %13 : tile<300xi32>
      %17 = add %15, %16 : tile<300xi32>
      store %6, %17
      yield
    }
  )";
  // Collatz steps of n + 20, into both arrays.
  const std::string loop_while = prologue + R"(
    %11 = constant value=index(20) : index
    %12 = add %2, %11 : index
    %13, %14 = while %12, %8 : index, index {(%15 : index, %16 : index)
      %17 = gt %15, %9 : i1
      yield %17
    } {(%18 : index, %19 : index)
      %20 = constant value=index(2) : index
      %21 = constant value=index(3) : index
      %22 = rem %18, %20 : index
      %23 = eq %22, %8 : i1
      %24 = if %23 : index {
        %25 = div %18, %20 : index
        yield %25
      } {
        %26 = mul %18, %21 : index
        %27 = add %26, %9 : index
        yield %27
      }
      %28 = add %19, %9 : index
      yield %24, %28
    }
    %29 = cast %14 : i32
    %30 = splat %29 : tile<300xi32>
    store %7, %30
  )";
  // A branch on what memory holds, with stores and a barrier inside.
  const std::string branch = prologue + R"(
    %11 = load %0 : i32
    %12 = constant value=i32(3) : i32
    %13 = and %11, %12 : i32
    %14 = constant value=i32(0) : i32
    %15 = ne %13, %14 : i1
    %16 = if %15 : tile<300xi32> {
      %17 = load %6 : tile<300xi32>
      store %7, %17
      yield %17
    } {
      %18 = constant value=index(299) : index
      %19 = splat %18 : tile<300xindex>
      %20 = sub %19, %3 : tile<300xindex>
      %21 = ptr_add %5, %20 : tile<300xptr<i32>>
      %22 = load %21 : tile<300xi32>
      store %7, %22
      yield %22
    }
    %23 = load %7 : tile<300xi32>
    %24 = add %23, %16 : tile<300xi32>
    store %6, %24
  )";
  std::vector<Sample> all;
  for (std::int64_t n : {0, 1, 5, -3}) {
    all.push_back(laid(fmt::format("carried_pointer_{}", n + 3), arrays, carried_pointer, {8192, 65536, n}));
    all.push_back(parsed(fmt::format("downwards_{}", n + 3), arrays, downwards, {8192, 65536, n}));
    all.push_back(parsed(fmt::format("loop_while_{}", n + 3), arrays, loop_while, {8192, 65536, n}));
  }
  all.push_back(laid("branch_apart", arrays, branch, {8192, 65536, 0}));
  all.push_back(laid("branch_overlapping", arrays, branch, {8192, 8200, 0}));
  return all;
}

std::vector<Sample> all_samples() {
  std::vector<Sample> all;
  for (auto& group : {copy_samples(), shape_samples(), overlap_samples(), control_samples()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace kiln::test
