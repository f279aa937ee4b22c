// The variables of a cluster in one JavaScript environment.
#ifndef ALLSTOP_BINDING_NATIVE_VARIABLES_H_
#define ALLSTOP_BINDING_NATIVE_VARIABLES_H_

#include <napi.h>

#include <memory>

#include "../core/variables.h"
#include "environment.h"

namespace allstop::binding {

// One variable. The interface NativeVariable in lib/native/binding.ts documents the methods.
// JavaScript thread only. No call blocks for longer than other threads copy or add the value.
//
// Life: until JavaScript collects the object and its functions, or the environment ends. They hold
// nothing but the core's object, so it needs no Close.
class NativeVariable final : public Napi::ObjectWrap<NativeVariable> {
 public:
  static Napi::Function Class(Napi::Env env, Environment& environment);
  static Napi::Value Make(Environment& environment, std::shared_ptr<core::Variable> variable);

  explicit NativeVariable(const Napi::CallbackInfo& info);

  core::Variable& variable() { return *variable_; }

 private:
  using Info = Napi::CallbackInfo;

  Napi::Value BindCapsule(const Info& info);

  std::shared_ptr<core::Variable> variable_;
};

// All variables of a cluster: NativeVariables in lib/native/binding.ts. JavaScript thread only.
//
// Life: as a NativeVariable's. The object that createVariables made owns the variables together
// with those that attachVariables made.
class NativeVariables final : public Napi::ObjectWrap<NativeVariables> {
 public:
  static Napi::Function Class(Napi::Env env, Environment& environment);
  static Napi::Value Make(Environment& environment, std::shared_ptr<core::Variables> variables);

  explicit NativeVariables(const Napi::CallbackInfo& info);

 private:
  using Info = Napi::CallbackInfo;

  template <Napi::Value (NativeVariables::*method)(const Info&)>
  Napi::Value Checked(const Info& info);

  Napi::Value Define(const Info& info);
  Napi::Value Find(const Info& info);
  Napi::Value ReadAll(const Info& info);
  Napi::Value AssignAll(const Info& info);
  Napi::Value Forget(const Info& info);
  Napi::Value EndPublishing(const Info& info);

  std::shared_ptr<Environment> environment_;
  std::shared_ptr<core::Variables> variables_;
};

// openPublished in lib/native/binding.ts: a function that reads the bytes, or null.
Napi::Value OpenPublished(const Napi::CallbackInfo& info);

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_NATIVE_VARIABLES_H_
