// The op table and what is generated from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <fstream>
#include <set>
#include <sstream>

#include "backend/ir/op.h"
#include "tests/ir/op_samples.h"
#include "tests/support/build_tree.h"

namespace kiln::ir::test {
namespace {

TEST(OpTable, InfoStandsAtItsOpAndMnemonicsAreUnique) {
  std::set<std::string> seen;
  for (Op op : all_ops()) {
    EXPECT_EQ(info(op).op, op);
    EXPECT_TRUE(seen.insert(mnemonic(op)).second) << mnemonic(op);
    EXPECT_EQ(op_named(mnemonic(op)), op);
    EXPECT_FALSE(std::string(info(op).doc).empty());
  }
  EXPECT_EQ(op_named("no_such_op"), std::nullopt);
}

TEST(OpTable, OperandCountsFollowTheMarks) {
  EXPECT_EQ(info(Op::Fma).min_operands(), 3);
  EXPECT_EQ(info(Op::Fma).max_operands(), 3);
  EXPECT_EQ(info(Op::Load).min_operands(), 1);
  EXPECT_EQ(info(Op::Load).max_operands(), 3);
  EXPECT_EQ(info(Op::For).min_operands(), 3);
  EXPECT_EQ(info(Op::For).max_operands(), INT_MAX);
  EXPECT_EQ(info(Op::Constant).max_operands(), 0);
}

TEST(OpTable, TraitsAndEffectsComeFromTheRow) {
  EXPECT_TRUE(info(Op::Add).pure);
  EXPECT_TRUE(info(Op::Splat).pure);
  EXPECT_FALSE(info(Op::Store).pure);
  EXPECT_FALSE(info(Op::For).pure);
  EXPECT_TRUE(info(Op::Yield).terminator);
  ASSERT_EQ(info(Op::Load).effects.size(), 1u);
  EXPECT_EQ(info(Op::Load).effects[0].kind, EffectKind::Read);
  EXPECT_EQ(info(Op::Load).effects[0].space, MemorySpace::Global);
  EXPECT_EQ(info(Op::Store).effects[0].kind, EffectKind::Write);
  EXPECT_TRUE(info(Op::Splat).effects.empty());
}

TEST(OpTable, InexactOpsAndTwoExactOnesMayBeFast) {
  for (Op op : all_ops()) {
    const auto attrs = info(op).attrs;
    const bool fast = std::find(attrs.begin(), attrs.end(), AttrKey::fast) != attrs.end();
    const bool inexact = info(op).elementwise && info(op).accuracy.bound != Bound::Exact;
    EXPECT_EQ(fast, inexact || op == Op::Div || op == Op::Sqrt) << mnemonic(op);
    EXPECT_EQ(fast, info(op).accuracy.fast) << mnemonic(op);
  }
}

TEST(OpTable, ElementwiseOpsHaveTheirOwnEnum) {
  EXPECT_EQ(elementwise(Op::Add), Ew::Add);
  EXPECT_EQ(elementwise(Op::GeluTanh), Ew::GeluTanh);
  EXPECT_EQ(elementwise(Op::Load), std::nullopt);
}

std::string joined(std::span<const char* const> names) {
  std::string s;
  for (const char* n : names) s += (s.empty() ? "" : ", ") + std::string(n);
  return s;
}

const char* rule_name(TypeRule rule) {
  switch (rule) {
    case TypeRule::None: return "";
    case TypeRule::Num: return "integers, index, floats";
    case TypeRule::Float: return "floats";
    case TypeRule::Math: return "f16, bf16, f32";
    case TypeRule::Int: return "integers, index";
    case TypeRule::Bits: return "i1, integers, index";
    case TypeRule::Cmp: return "any but f8; gives i1";
  }
  return "";
}

std::string accuracy_text(Accuracy a) {
  switch (a.bound) {
    case Bound::Exact: return a.fast ? "exact, or `fast`" : "exact";
    case Bound::Ulp: return std::to_string(a.n) + " ulp";
    case Bound::Rel: return std::to_string(a.n) + " · 2^-23 · max(abs x, abs result)";
  }
  return "";
}

std::string cell(std::string s) {  // a bar would end the cell
  for (std::size_t i = 0; (i = s.find('|', i)) != std::string::npos; i += 2) s.replace(i, 1, "\\|");
  return s;
}

/// docs/ops.md as the table says it.
std::string ops_page() {
  std::ostringstream out;
  out << "# Operations of the tile IR\n\n"
         "Generated from `backend/ir/ops.def`; the test `OpTable.DocumentationIsUpToDate` compares and, where they "
         "differ,\n"
         "writes the new page beside its program. \"floats\" are f16, bf16, f32, f64; the 8-bit floats take part in no "
         "arithmetic.\n\n"
         "## Elementwise\n\n| op | operands | types | accuracy | meaning |\n|---|---|---|---|---|\n";
  for (Op op : all_ops())
    if (const OpInfo& i = info(op); i.elementwise)
      out << "| `" << i.mnemonic << "` | " << i.arity << " | " << rule_name(i.rule) << " | "
          << accuracy_text(i.accuracy) << " | " << cell(i.doc) << " |\n";
  out << "\n## Structural\n\n`?` optional, `...` any number.\n\n| op | operands | attributes | regions | effects | "
         "meaning |\n|---|---|---|---|---|---|\n";
  for (Op op : all_ops()) {
    const OpInfo& i = info(op);
    if (i.elementwise) continue;
    std::string attrs, effects;
    for (AttrKey k : i.attrs) attrs += (attrs.empty() ? "" : ", ") + std::string(name(k));
    for (const Effect& e : i.effects) effects += e.kind == EffectKind::Read ? "reads memory" : "writes memory";
    out << "| `" << i.mnemonic << "` | " << joined(i.operand_names) << " | " << attrs << " | " << i.regions << " | "
        << (i.pure ? "none" : effects) << " | " << cell(i.doc) << " |\n";
  }
  out << "\n## Attributes\n\n| attribute | meaning |\n|---|---|\n";
#define KILN_ATTR(name, kind, presence, meaning) out << "| `" #name "` | " meaning " |\n";
#include "backend/ir/ops.def"
  return out.str();
}

TEST(OpTable, DocumentationIsUpToDate) {
  const auto root = kiln::test::source_dir();
  if (!root) GTEST_SKIP() << "the source tree is not beside this build folder";
  std::ifstream file(*root / "docs/ops.md");
  std::stringstream text;
  text << file.rdbuf();
  if (text.str() == ops_page()) return;
  std::ofstream(kiln::test::program_dir() / "ops.md") << ops_page();
  FAIL() << "docs/ops.md differs from ops.def; what it should be is in " << kiln::test::program_dir() / "ops.md";
}

}  // namespace
}  // namespace kiln::ir::test
