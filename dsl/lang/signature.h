// Reading a kernel lambda: its parameter types, and whether it may be a kernel at all. Everything here is decided at
// compile time, with messages that start with "kiln:".
#pragma once
#include <type_traits>

#include "dsl/lang/handle.h"

namespace kiln::detail {

template <class F>
struct Bytes {
  unsigned char b[sizeof(F)];
};
/// Whether F can be rebuilt from bytes in a constant expression: it cannot when it holds a reference or a pointer, at
/// any depth. (A partial specialisation: g++ 12 judges a concept wrongly inside some nested instantiations.)
template <class F, class = void>
struct Rebuildable : std::false_type {};
template <class F>
struct Rebuildable<F, std::void_t<std::bool_constant<(static_cast<void>(__builtin_bit_cast(F, Bytes<F>{})), true)>>>
    : std::true_type {};

/// Whether every capture is a value. Closures that are not trivially copyable cannot be judged and pass.
template <class F>
constexpr bool captures_values() {
  if constexpr (!std::is_trivially_copyable_v<F> || std::is_empty_v<F>) return true;
  else return Rebuildable<F>::value;
}

template <class... P>
struct Params {};

template <class R, class... P>
struct SignatureOf {
  static_assert(std::is_void_v<R>, "kiln: a kernel returns void; write results with store");
  static_assert(((!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>) && ...),
                "kiln: take kernel parameters by value or by const reference");
  using type = Params<std::decay_t<P>...>;
};
template <class M>
struct Signature;
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const> : SignatureOf<R, P...> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const noexcept> : SignatureOf<R, P...> {
  static_assert(always_false<C>,
                "kiln: a kernel lambda must not be noexcept: errors found while tracing are exceptions");
};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...)> : SignatureOf<R, P...> {
  static_assert(always_false<C>, "kiln: a kernel lambda must not be mutable");
};
template <class R, class... P>
struct Signature<R (*)(P...)> : SignatureOf<R, P...> {};

/// Params<P…> of a kernel lambda or function pointer.
template <class F>
constexpr auto params_of() {
  if constexpr (std::is_pointer_v<F>) return typename Signature<F>::type{};
  else if constexpr (requires { &F::operator(); }) return typename Signature<decltype(&F::operator())>::type{};
  else {
    static_assert(always_false<F>,
                  "kiln: a kernel lambda must name its parameter types (no auto parameters): In<float>, Out<float>, "
                  "Int, Const<int>, …");
    return Params<>{};
  }
}

constexpr int word_count(const char* s) {
  int n = 0;
  for (bool inside = false; *s; ++s) {
    const bool letter = *s != ' ';
    n += letter && !inside;
    inside = letter;
  }
  return n;
}
void names_takes_one_word_for_each_parameter();  // never defined: named by the compiler when it is called

/// "a b c n BLOCK": one word for each of N parameters, counted at compile time.
template <int N>
struct Names {
  const char* words;
  consteval Names(const char* w) : words(w) {
    if (word_count(w) != N) names_takes_one_word_for_each_parameter();
  }
};

}  // namespace kiln::detail
