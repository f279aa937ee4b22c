/** The folder for the include path of a native addon, for example in `binding.gyp`. */
declare const include: string;
export = include;
