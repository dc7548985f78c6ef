package source

// LocalPath is the path of a Source that is a file of the operating system: a Path, mapped or
// not. It is for what is kept beside the file.
func LocalPath(s Source) (path string, ok bool) {
	if local, ok := s.(interface{ localPath() string }); ok {
		return local.localPath(), true
	}
	return "", false
}

func (f file) localPath() string { return string(f) }
