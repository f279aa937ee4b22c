#include "native_variables.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "convert.h"

namespace allstop::binding {
namespace {

using core::VariableType;

// The bytes of an argument: of a number, or of a typed array.
struct Bytes {
  double number = 0;
  void* data = nullptr;
  std::size_t size = 0;
};

void GetArray(Napi::Env env, Napi::Value value, Bytes& bytes) {
  std::size_t length = 0;
  napi_typedarray_type type;
  if (napi_get_typedarray_info(env, value, &type, &length, &bytes.data, nullptr, nullptr) !=
      napi_ok) {
    throw Napi::TypeError::New(env, InternalError("a value must be a number or a typed array"));
  }
  bytes.size = value.As<Napi::TypedArray>().ByteLength();
  static double nothing = 0;
  if (bytes.data == nullptr) bytes.data = &nothing;  // an empty array; memcpy takes no null
}

void GetBytes(const Napi::CallbackInfo& info, std::size_t index, Bytes& bytes) {
  const Napi::Env env = info.Env();
  if (napi_get_value_double(env, info[index], &bytes.number) == napi_ok) {
    bytes.data = &bytes.number;
    bytes.size = sizeof(double);
    return;
  }
  GetArray(env, info[index], bytes);
}

// Throws if the argument has not as many bytes as the variable.
void GetValue(const Napi::CallbackInfo& info, std::size_t index, const core::Variable& variable,
              Bytes& bytes) {
  GetBytes(info, index, bytes);
  if (bytes.size == variable.size()) return;
  throw Napi::TypeError::New(info.Env(), InternalError("a value of another length"));
}

}  // namespace

template <Napi::Value (NativeVariable::*method)(const Napi::CallbackInfo&)>
Napi::Value NativeVariable::Checked(const Info& info) {
  return ExceptionsToJs(info.Env(), [&] { return (this->*method)(info); });
}

Napi::Function NativeVariable::Class(Napi::Env env, Environment& environment) {
#define ALLSTOP_METHOD(name, method) \
  InstanceMethod<&NativeVariable::Checked<&NativeVariable::method>>(name)
  return DefineClass(env, "NativeVariable",
                     {
                         ALLSTOP_METHOD("read", Read),
                         ALLSTOP_METHOD("assign", Assign),
                         ALLSTOP_METHOD("assignAdd", AssignAdd),
                     },
                     &environment);
#undef ALLSTOP_METHOD
}

Napi::Value NativeVariable::Make(Environment& environment,
                                 std::shared_ptr<core::Variable> variable) {
  environment.variable_to_attach = std::move(variable);
  return environment.variable_class.New({});
}

NativeVariable::NativeVariable(const Info& info)
    : Napi::ObjectWrap<NativeVariable>(info),
      variable_(std::exchange(Environment::Of(info)->variable_to_attach, nullptr)) {
  if (!variable_) {
    throw Napi::TypeError::New(info.Env(), "allstop: illegal constructor of NativeVariable");
  }
  const auto property = [&](const char* name, double value) {
    return Napi::PropertyDescriptor::Value(name, Napi::Number::New(info.Env(), value),
                                           napi_enumerable);
  };
  // Not Object::Set, which would call a setter that a program has put on Object.prototype.
  info.This().As<Napi::Object>().DefineProperties({
      property("type", static_cast<double>(variable_->type())),
      property("byteLength", static_cast<double>(variable_->size())),
  });
}

// read(into): a number's value is the result.
Napi::Value NativeVariable::Read(const Info& info) {
  if (variable_->type() == VariableType::kNumber) {
    double value = 0;
    variable_->Read(&value);
    return Napi::Number::New(info.Env(), value);
  }
  Bytes bytes;
  GetValue(info, 0, *variable_, bytes);
  variable_->Read(bytes.data);
  return info.Env().Undefined();
}

Napi::Value NativeVariable::Assign(const Info& info) {
  Bytes bytes;
  GetValue(info, 0, *variable_, bytes);
  variable_->Assign(bytes.data);
  return info.Env().Undefined();
}

// assignAdd(delta, closure, ordinal)
Napi::Value NativeVariable::AssignAdd(const Info& info) {
  Bytes bytes;
  GetValue(info, 0, *variable_, bytes);
  variable_->AssignAdd(bytes.data, IdArgument(info, 1), IdArgument(info, 2));
  return info.Env().Undefined();
}

template <Napi::Value (NativeVariables::*method)(const Napi::CallbackInfo&)>
Napi::Value NativeVariables::Checked(const Info& info) {
  return ExceptionsToJs(info.Env(), [&] { return (this->*method)(info); });
}

Napi::Function NativeVariables::Class(Napi::Env env, Environment& environment) {
#define ALLSTOP_METHOD(name, method) \
  InstanceMethod<&NativeVariables::Checked<&NativeVariables::method>>(name)
  return DefineClass(env, "NativeVariables",
                     {
                         ALLSTOP_METHOD("define", Define),
                         ALLSTOP_METHOD("find", Find),
                         ALLSTOP_METHOD("readAll", ReadAll),
                         ALLSTOP_METHOD("assignAll", AssignAll),
                         ALLSTOP_METHOD("forget", Forget),
                     },
                     &environment);
#undef ALLSTOP_METHOD
}

Napi::Value NativeVariables::Make(Environment& environment,
                                  std::shared_ptr<core::Variables> variables) {
  environment.variables_to_attach = std::move(variables);
  return environment.variables_class.New({});
}

NativeVariables::NativeVariables(const Info& info)
    : Napi::ObjectWrap<NativeVariables>(info),
      environment_(Environment::Of(info)),
      variables_(std::exchange(environment_->variables_to_attach, nullptr)) {
  const Napi::Env env = info.Env();
  if (!variables_) {
    throw Napi::TypeError::New(env, "allstop: illegal constructor of NativeVariables");
  }
  info.This().As<Napi::Object>().DefineProperties({
      Napi::PropertyDescriptor::Value(
          "id", Napi::String::New(env, std::to_string(variables_->id())), napi_enumerable),
  });
}

// define(name, type, value)
Napi::Value NativeVariables::Define(const Info& info) {
  const auto type = static_cast<VariableType>(IdArgument(info, 1));
  Bytes bytes;
  GetBytes(info, 2, bytes);
  auto variable = variables_->Define(StringArgument(info, 0), type, bytes.data, bytes.size);
  return variable ? NativeVariable::Make(*environment_, std::move(variable)) : info.Env().Null();
}

Napi::Value NativeVariables::Find(const Info& info) {
  auto variable = variables_->Find(StringArgument(info, 0));
  return variable ? NativeVariable::Make(*environment_, std::move(variable)) : info.Env().Null();
}

namespace {

// Two arguments: an array of NativeVariables, and an array with a typed array of as many bytes for
// each. (That of a number is a Float64Array.)
struct Several {
  std::vector<core::Variable*> variables;
  std::vector<void*> bytes;
};

Several SeveralArguments(const Napi::CallbackInfo& info) {
  const auto objects = info[0].As<Napi::Array>();
  const auto arrays = info[1].As<Napi::Array>();
  Several several;
  for (std::uint32_t index = 0; index < objects.Length(); ++index) {
    core::Variable& variable =
        NativeVariable::Unwrap(objects.Get(index).As<Napi::Object>())->variable();
    Bytes bytes;
    GetArray(info.Env(), arrays.Get(index), bytes);
    if (bytes.size != variable.size()) {
      throw Napi::TypeError::New(info.Env(), InternalError("a value of another length"));
    }
    several.variables.push_back(&variable);
    several.bytes.push_back(bytes.data);
  }
  return several;
}

}  // namespace

// readAll(variables, into)
Napi::Value NativeVariables::ReadAll(const Info& info) {
  const Several several = SeveralArguments(info);
  variables_->ReadAll({several.variables.begin(), several.variables.end()}, several.bytes);
  return info.Env().Undefined();
}

// assignAll(variables, values)
Napi::Value NativeVariables::AssignAll(const Info& info) {
  const Several several = SeveralArguments(info);
  variables_->AssignAll(several.variables, {several.bytes.begin(), several.bytes.end()});
  return info.Env().Undefined();
}

Napi::Value NativeVariables::Forget(const Info& info) {
  variables_->Forget(IdArgument(info, 0));
  return info.Env().Undefined();
}

}  // namespace allstop::binding
