// A SQLite connection that obeys a coordinator. The addon is at the same time a loadable
// extension of SQLite: `db.loadExtension(path of the addon)` gives it the connection, which no
// binding gives to JavaScript.
#ifndef ALLSTOP_BINDING_SQLITE_H_
#define ALLSTOP_BINDING_SQLITE_H_

#include <napi.h>

namespace allstop::binding {

// See connectSqlite and obeySqlite in lib/native/binding.ts.
Napi::Value ConnectSqlite(const Napi::CallbackInfo& info);
Napi::Value ObeySqlite(const Napi::CallbackInfo& info);

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_SQLITE_H_
