#include "native_variables.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../include/allstop/allstop.h"
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

void GetArray(napi_env env, napi_value value, Bytes& bytes) {
  std::size_t length = 0;
  napi_typedarray_type type = napi_int8_array;
  const bool is_array = napi_get_typedarray_info(env, value, &type, &length, &bytes.data, nullptr,
                                                 nullptr) == napi_ok;
  const bool is_short = type == napi_float32_array || type == napi_int32_array;
  if (!is_array || !(is_short || type == napi_float64_array)) {
    throw Napi::TypeError::New(
        env, InternalError("a value must be a number, or an array of a variable's type"));
  }
  bytes.size = length * (is_short ? 4 : 8);
  static double nothing = 0;
  if (bytes.data == nullptr) bytes.data = &nothing;  // an empty array; memcpy takes no null
}

void GetBytes(napi_env env, napi_value value, Bytes& bytes) {
  if (napi_get_value_double(env, value, &bytes.number) != napi_ok) {
    GetArray(env, value, bytes);
    return;
  }
  bytes.data = &bytes.number;
  bytes.size = sizeof(double);
}

// Throws if the argument has not as many bytes as the variable.
void GetValue(napi_env env, napi_value value, const core::Variable& variable, Bytes& bytes) {
  GetBytes(env, value, bytes);
  if (bytes.size == variable.size()) return;
  throw Napi::TypeError::New(env, InternalError("a value of another length"));
}

std::uint64_t GetId(napi_env env, napi_value value) {
  constexpr double kLargest = 9007199254740991.0;
  double id = -1;
  if (napi_get_value_double(env, value, &id) == napi_ok && id >= 0 && id <= kLargest) {
    return static_cast<std::uint64_t>(id);
  }
  throw Napi::TypeError::New(env, InternalError("a call and an ordinal must be ids"));
}

// Missing arguments are undefined.
using Arguments = std::array<napi_value, 3>;

// read(into): a number's value is the result.
napi_value Read(napi_env env, const Arguments& arguments, core::Variable& variable) {
  if (variable.type() == VariableType::kNumber) {
    double value = 0;
    variable.Read(&value);
    return Napi::Number::New(env, value);
  }
  Bytes bytes;
  GetValue(env, arguments[0], variable, bytes);
  variable.Read(bytes.data);
  return nullptr;
}

napi_value Assign(napi_env env, const Arguments& arguments, core::Variable& variable) {
  Bytes bytes;
  GetValue(env, arguments[0], variable, bytes);
  variable.Assign(bytes.data);
  return nullptr;
}

// assignAdd(delta, call, ordinal)
napi_value AssignAdd(napi_env env, const Arguments& arguments, core::Variable& variable) {
  Bytes bytes;
  GetValue(env, arguments[0], variable, bytes);
  variable.AssignAdd(bytes.data, GetId(env, arguments[1]), GetId(env, arguments[2]));
  return nullptr;
}

using Operation = napi_value (*)(napi_env, const Arguments&, core::Variable&);

template <Operation operation>
napi_value Call(napi_env env, napi_callback_info info) {
  Arguments arguments = {};
  std::size_t count = arguments.size();
  void* data = nullptr;
  napi_get_cb_info(env, info, &count, arguments.data(), nullptr, &data);
  try {
    auto& variable = *static_cast<core::Variable*>(data);
    return ExceptionsToJs(env,
                          [&] { return Napi::Value(env, operation(env, arguments, variable)); });
  } catch (const Napi::Error& error) {
    error.ThrowAsJavaScriptException();
    return nullptr;
  }
}

// A function that keeps the variable alive. It finds it by its data: to unwrap `this`, as a method
// of an ObjectWrap does, takes longer than to add a number.
template <Operation operation>
Napi::Value FunctionOf(Napi::Env env, const std::shared_ptr<core::Variable>& variable,
                       const char* name) {
  auto owner = std::make_unique<std::shared_ptr<core::Variable>>(variable);
  napi_value function = nullptr;
  const auto finalize = [](napi_env, void* held, void*) {
    delete static_cast<std::shared_ptr<core::Variable>*>(held);
  };
  if (napi_create_function(env, name, NAPI_AUTO_LENGTH, Call<operation>, variable.get(),
                           &function) != napi_ok ||
      napi_add_finalizer(env, function, owner.get(), finalize, nullptr, nullptr) != napi_ok) {
    throw Napi::Error::New(env);
  }
  owner.release();
  return Napi::Value(env, function);
}

}  // namespace

Napi::Function NativeVariable::Class(Napi::Env env, Environment& environment) {
  return DefineClass(env, "NativeVariable",
                     {InstanceMethod<&NativeVariable::BindCapsule>("bindCapsule")}, &environment);
}

Napi::Value NativeVariable::Make(Environment& environment,
                                 std::shared_ptr<core::Variable> variable) {
  return Environment::Construct(environment.variable_class, environment.variable_to_attach,
                                std::move(variable));
}

NativeVariable::NativeVariable(const Info& info)
    : Napi::ObjectWrap<NativeVariable>(info),
      variable_(std::exchange(Environment::Of(info)->variable_to_attach, nullptr)) {
  const Napi::Env env = info.Env();
  if (!variable_) {
    throw Napi::TypeError::New(env, "allstop: illegal constructor of NativeVariable");
  }
  const auto property = [](const char* name, Napi::Value value) {
    return Napi::PropertyDescriptor::Value(name, value, napi_enumerable);
  };
  const auto number = [&](double value) { return Napi::Number::New(env, value); };
  // Not Object::Set, which would call a setter that a program has put on Object.prototype.
  info.This().As<Napi::Object>().DefineProperties({
      property("type", number(static_cast<double>(variable_->type()))),
      property("byteLength", number(static_cast<double>(variable_->size()))),
      property("read", FunctionOf<Read>(env, variable_, "read")),
      property("assign", FunctionOf<Assign>(env, variable_, "assign")),
      property("assignAdd", FunctionOf<AssignAdd>(env, variable_, "assignAdd")),
  });
  const std::string path = variable_->path();
  if (path.empty()) return;
  info.This().As<Napi::Object>().DefineProperty(property("path", Napi::String::New(env, path)));
}

Napi::Value OpenPublished(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto size = static_cast<std::size_t>(IdArgument(info, 1));
  auto reader = core::PublishedReader::Open(StringArgument(info, 0), size);
  if (!reader) return env.Null();
  const std::shared_ptr<core::PublishedReader> shared = std::move(reader);
  return Napi::Function::New(
      env,
      [shared, size](const Napi::CallbackInfo& call) -> Napi::Value {
        Bytes bytes;
        GetArray(call.Env(), call[0], bytes);
        if (bytes.size != size) {
          throw Napi::TypeError::New(call.Env(), InternalError("a value of another length"));
        }
        return Napi::Boolean::New(call.Env(), shared->Read(bytes.data));
      },
      "read");
}

Napi::Value NativeVariable::BindCapsule(const Info& info) {
  return ExceptionsToJs(info.Env(), [&] {
    binding::BindCapsule(ObjectArgument(info, 0), ALLSTOP_CAPSULE_VARIABLE, variable_);
    return info.Env().Undefined();
  });
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
                         ALLSTOP_METHOD("endPublishing", EndPublishing),
                     },
                     &environment);
#undef ALLSTOP_METHOD
}

Napi::Value NativeVariables::Make(Environment& environment,
                                  std::shared_ptr<core::Variables> variables) {
  return Environment::Construct(environment.variables_class, environment.variables_to_attach,
                                std::move(variables));
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

// define(name, type, value, isPublished)
Napi::Value NativeVariables::Define(const Info& info) {
  const std::uint64_t number = IdArgument(info, 1);
  if (number > static_cast<std::uint64_t>(VariableType::kInt32)) {
    throw Napi::TypeError::New(info.Env(), InternalError("an unknown type of variable"));
  }
  const auto type = static_cast<VariableType>(number);
  Bytes bytes;
  GetBytes(info.Env(), info[2], bytes);
  const bool is_published = info[3].IsBoolean() && info[3].As<Napi::Boolean>().Value();
  auto variable =
      variables_->Define(StringArgument(info, 0), type, bytes.data, bytes.size, is_published);
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

Napi::Value NativeVariables::EndPublishing(const Info& info) {
  variables_->EndPublishing();
  return info.Env().Undefined();
}

}  // namespace allstop::binding
