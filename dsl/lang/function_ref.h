// FunctionRef: a reference to a callable, the one indirect call between type-erased code and a user's lambda.
#pragma once

namespace kiln::detail {

template <class Signature>
class FunctionRef;

template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  /// `f` must outlive the FunctionRef.
  template <class F>
  FunctionRef(const F& f)
      : object_(&f), call_([](const void* o, A... a) -> R { return (*static_cast<const F*>(o))(a...); }) {}
  R operator()(A... a) const { return call_(object_, a...); }

 private:
  const void* object_;
  R (*call_)(const void*, A...);
};

}  // namespace kiln::detail
