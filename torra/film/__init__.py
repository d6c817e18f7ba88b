"""Film: one scan of the radar as a storyboard, a page that plays it, and a video."""
